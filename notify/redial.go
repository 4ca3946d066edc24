package notify

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// How many connections over TLS are opened for one attempt.
const (
	maxDials   = 3   // when those before were lost
	maxCrowded = 256 // when others filled them as well
)

// mayDial decides about a further connection. net/http dials again, for HTTP/2, for as long as the attempt has time, when
// the request could not be given to the last one:
//
//   - it was lost. A receiver that refuses our certificate, hangs up as soon as the handshake is over, or admits no
//     request at all would be called in a loop;
//   - other attempts were quicker, and took as many requests to it as the receiver admits. That says nothing against the
//     receiver, and ends by itself: each such dial serves another attempt;
//   - net/http closed it unused, since another one had room, which others took then.
func (a *attempt) mayDial() error {
	if last := a.dialled.Load(); last != nil && !a.crowded(last) {
		if alert := lastAlert(a, last, 0); alert != nil {
			return &handshakeError{err: alert, asked: true}
		}
		if a.lost.Add(1) >= maxDials {
			return fmt.Errorf("connect again: %w", io.EOF)
		}
	}
	if a.dials.Add(1) > maxCrowded {
		return fmt.Errorf("connect again: %w", io.EOF)
	}
	return nil
}

// crowded reports whether it was for other attempts that a connection did not serve the one that dialled it. One that
// lives, and that nobody else has, is about to be closed or taken, if it is not the receiver that leaves it useless.
func (a *attempt) crowded(conn *tls.Conn) bool {
	below, ok := conn.NetConn().(*patientConn)
	if !ok {
		return false
	}
	patience := time.NewTimer(dialPatience)
	defer patience.Stop()
	select {
	case <-below.over:
	case <-below.taken:
	case <-patience.C:
	case <-a.Done():
	}
	select {
	case <-below.over:
		return !below.given.Load() && errors.Is(lastError(conn), net.ErrClosed)
	default:
	}
	select {
	case <-below.taken:
		return true
	default:
		return false
	}
}

// noteGiven notes on a connection of HTTP/2 that the attempt was given it.
func (a *attempt) noteGiven() {
	if a.shared == nil {
		return
	}
	if below, ok := a.shared.NetConn().(*patientConn); ok {
		below.given.Store(true)
		if a.dialled.Load() != a.shared {
			below.take()
		}
	}
}
