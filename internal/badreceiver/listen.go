package badreceiver

import (
	"context"
	"errors"
	"net"
	"time"
)

// How NeverAccepts finds out that its queue is full: a connect does not succeed for fillWait. On loopback one that can
// succeed needs microseconds, and one that was merely slow has taken its place in the queue all the same.
const (
	fillWait = 200 * time.Millisecond
	maxFill  = 1024
)

// listen takes a port in the way of the kind and returns host and port.
func (r *Receiver) listen(ctx context.Context, kind Kind) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	r.listener = listener
	addr := listener.Addr().String()
	switch kind {
	case Refuses:
		return r.bind(ctx, addr)
	case NeverAccepts:
		return addr, r.fill(ctx, addr)
	default:
		return addr, nil
	}
}

// bind takes a port at which nobody listens, and keeps it, so that no other process can come to listen there: it is the
// near end of a connection to the receiver's own listener.
func (r *Receiver) bind(ctx context.Context, addr string) (string, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	r.keep(c)
	return c.LocalAddr().String(), nil
}

// fill connects until nobody can any more.
func (r *Receiver) fill(ctx context.Context, addr string) error {
	if err := shortenQueue(r.listener); err != nil {
		return err
	}
	d := net.Dialer{Timeout: fillWait}
	for range maxFill {
		c, err := d.DialContext(ctx, "tcp", addr)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			return nil
		}
		if err != nil {
			return err
		}
		r.keep(c)
	}
	return errors.New("the queue of connections does not fill")
}
