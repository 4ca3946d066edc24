package notify

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// How long is waited at most for what the reader of a connection is about to see. It takes milliseconds, unless this
// machine stands still.
const (
	alertPatience = time.Second           // by a failed write
	closePatience = 5 * time.Second       // by an attempt whose connection has ended
	dialPatience  = 50 * time.Millisecond // by one that dials again, and cannot know whether it has
)

// A patientConn lies below TLS. It bounds what a receiver sends in the handshake, which TLS keeps until it has each message
// whole.
//
// A receiver that asks for a certificate refuses it, with TLS 1.3, after the handshake: it
// sends an alert and closes the connection, on which the request may be under way. The write then fails, and whoever
// reports that would hide the alert, which has come before. So the failure waits until the reader has seen it, and closed
// the connection because of it, or has seen that there is nothing more.
type patientConn struct {
	net.Conn
	room  int         // how much may be read, in bytes; negative: anything, since the handshake is over
	asked atomic.Bool // the peer asked for a certificate
	given atomic.Bool // to an attempt

	once sync.Once
	over chan struct{} // nothing is read any more

	onceTaken sync.Once
	taken     chan struct{} // an attempt other than the one that dialled was given it
}

func newPatientConn(conn net.Conn) *patientConn {
	return &patientConn{Conn: conn, room: maxHandshake, over: make(chan struct{}), taken: make(chan struct{})}
}

// end says that nothing is read any more.
func (c *patientConn) end() { c.once.Do(func() { close(c.over) }) }

// take says that an attempt other than the one that dialled was given the connection.
func (c *patientConn) take() { c.onceTaken.Do(func() { close(c.taken) }) }

func (c *patientConn) Read(p []byte) (int, error) {
	if c.room == 0 {
		return 0, errHandshakeTooLarge
	}
	if c.room > 0 {
		p = p[:min(len(p), c.room)]
	}
	n, err := c.Conn.Read(p)
	if c.room > 0 {
		c.room -= n
	}
	if err != nil {
		c.end()
	}
	return n, err
}

func (c *patientConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil && c.asked.Load() {
		patience := time.NewTimer(alertPatience)
		defer patience.Stop()
		select {
		case <-c.over:
		case <-patience.C:
		}
	}
	return n, err
}

func (c *patientConn) Close() error {
	c.end()
	return c.Conn.Close()
}

// ends reports whether nothing is read any more, now or within the patience.
func (c *patientConn) ends(ctx context.Context, patience time.Duration) bool {
	if patience > 0 {
		wait := time.NewTimer(patience)
		defer wait.Stop()
		select {
		case <-c.over:
		case <-wait.C:
		case <-ctx.Done():
		}
	}
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// lastAlert finds the alert with which a receiver that asked for a certificate ended a connection, which has ended or
// does so within the patience: the transport has those of HTTP/2 bare, and reports just that.
func lastAlert(ctx context.Context, conn *tls.Conn, patience time.Duration) error {
	below, ok := conn.NetConn().(*patientConn)
	if !ok || !below.asked.Load() {
		return nil
	}
	if !below.ends(ctx, patience) {
		return nil
	}
	err := lastError(conn)
	if _, ok := remoteAlert(err); ok {
		return err
	}
	return nil
}

// lastError is what ended a connection that is over: reading does not wait then, nor take anything away from anybody, and
// TLS remembers what it read last. It is net.ErrClosed when we ended it; nil: too much was left unread.
func lastError(conn *tls.Conn) error {
	var rest [4 << 10]byte
	for range 16 {
		if _, err := conn.Read(rest[:]); err != nil {
			return err
		}
	}
	return nil
}

// A headedConn reads what had been read too much before it goes on.
type headedConn struct {
	net.Conn
	head []byte
}

func (c *headedConn) Read(p []byte) (int, error) {
	if len(c.head) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.head)
	c.head = c.head[n:]
	return n, nil
}
