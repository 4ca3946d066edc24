package clienttest

import (
	"context"
	"net"
	"sync"
)

// listener accepts connections in memory.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newListener() *listener {
	return &listener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept waits for a connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and dial.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr returns the address of connections.
func (l *listener) Addr() net.Addr { return address{} }

// dial makes a connection, whatever the address.
func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx) // as net.Dialer
	}
}

// address is the address of a connection in memory.
type address struct{}

// Network returns the name of the network.
func (address) Network() string { return "memory" }

// String returns the address.
func (address) String() string { return "memory" }
