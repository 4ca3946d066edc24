package badreceiver

import (
	"context"
	"errors"
	"net"
	"time"
)

// NeverAccepts takes its queue for full when a connect does not succeed within fillWait. On loopback a connect takes
// microseconds, and a slower one has its place in the queue all the same.
const (
	fillWait = 200 * time.Millisecond
	maxFill  = 1024
)

// listen opens the port of a kind and returns host:port.
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

// bind reserves a port without a listener, so that no other process can listen there: it is the client side of a
// connection to the receiver's listener.
func (r *Receiver) bind(ctx context.Context, addr string) (string, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	r.keep(c)
	return c.LocalAddr().String(), nil
}

// fill connects until the accept queue is full.
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
