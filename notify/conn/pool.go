package conn

import (
	"cmp"
	"container/list"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/ringback/ringback/notify/guard"
)

// Options of a Pool.
type Options struct {
	// Guard decides which addresses may be dialled.
	Guard *guard.Guard
	// Agent is the User-Agent in requests to forward proxies.
	Agent string
	// MaxIdle bounds the connections kept open for later requests, and MaxIdlePerHost those to one host and port, of requests
	// with the same client certificate; those of package h1 and those of net/http count apart, and of the latter those of one
	// queue to a host. Zero: 1024 and 256. They are closed after 90 s without use.
	MaxIdle        int
	MaxIdlePerHost int
	// Resolver looks names up; nil: net.DefaultResolver.
	Resolver *net.Resolver
	// Roots are the authorities that receivers' certificates must come from; nil: the system's. See RootsWith.
	Roots *x509.CertPool
	// ProxyFor names the forward proxy (http or https, perhaps with a name and a password) that leads to a target, of which it
	// is given the scheme, the host and the port; a nil URL: none does. Nil: there are no proxies.
	ProxyFor func(target *url.URL) (*url.URL, error)
	// Dial replaces the guarded dial in tests.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// maxTransports is how many client certificates have connections of their own at a time.
const maxTransports = 64

// A Pool has the Transport without a client certificate, and those of the certificates used last: what one certificate
// opened, another one must not use.
type Pool struct {
	options Options
	plain   *Transport

	mu        sync.Mutex
	certified map[*tls.Certificate]*list.Element
	order     *list.List // of *Transport, the one used last in front
}

// NewPool makes a Pool. It starts nothing.
func NewPool(o Options) *Pool {
	o.MaxIdle = cmp.Or(o.MaxIdle, 1024)
	o.MaxIdlePerHost = cmp.Or(o.MaxIdlePerHost, min(256, o.MaxIdle))
	p := &Pool{options: o, certified: make(map[*tls.Certificate]*list.Element), order: list.New()}
	p.plain = p.newTransport(nil)
	return p
}

func (p *Pool) newTransport(certificate *tls.Certificate) *Transport {
	d := &dialer{
		Options:     p.options,
		net:         net.Dialer{Resolver: p.options.Resolver, KeepAlive: 30 * time.Second},
		tls:         newTLS(p.options.Roots),
		certificate: certificate,
		http1:       newHostSet(maxKnownHosts),
	}
	return &Transport{certificate: certificate, pooled: newTransport(d, false), fresh: newTransport(d, true)}
}

// Get returns the Transport of a client certificate, nil for none, until it is given back by Put.
func (p *Pool) Get(certificate *tls.Certificate) *Transport {
	if certificate == nil {
		return p.plain
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	element, known := p.certified[certificate]
	if !known {
		element = p.order.PushFront(p.newTransport(certificate))
		p.certified[certificate] = element
	}
	p.order.MoveToFront(element)
	t, _ := element.Value.(*Transport)
	t.uses++
	if p.order.Len() > maxTransports {
		p.drop(p.order.Back())
	}
	return t
}

// drop forgets a Transport. What its requests under way have open is closed when the last of them is over.
func (p *Pool) drop(element *list.Element) {
	old, _ := p.order.Remove(element).(*Transport)
	delete(p.certified, old.certificate)
	old.dropped = true
	old.closeIdle()
}

// Put ends the use of a Transport.
func (p *Pool) Put(t *Transport) {
	if t == p.plain {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t.uses--
	if t.dropped && t.uses == 0 {
		t.closeIdle()
	}
}

// Close closes idle connections, and ends dials that no request waits for. Requests under way go on.
func (p *Pool) Close() {
	p.plain.closeIdle()
	p.mu.Lock()
	defer p.mu.Unlock()
	for element := p.order.Front(); element != nil; element = element.Next() {
		if t, ok := element.Value.(*Transport); ok {
			t.closeIdle()
		}
	}
}
