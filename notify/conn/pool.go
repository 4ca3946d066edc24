package conn

import (
	"cmp"
	"container/list"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/notify/guard"
)

// Options of a Pool.
type Options struct {
	// Guard decides which addresses may be dialled.
	Guard *guard.Guard
	// Agent is the User-Agent of attempts and of requests to forward proxies; empty: Ringback/dev.
	Agent string
	// MaxIdle bounds idle connections per client certificate; zero: the constant MaxIdle. Connections of h1 and of
	// net/http are counted apart. Idle connections are closed after 90 s. Over HTTP/1 they are not used beyond the time
	// that the receiver announced.
	MaxIdle int
	// Resolver resolves host names; nil: net.DefaultResolver.
	Resolver *net.Resolver
	// Roots are the trusted certificate authorities of receivers; nil: the system's. See RootsWith.
	Roots *x509.CertPool
	// ProxyFor returns the forward proxy (http or https, with optional credentials) for a target, as that of
	// http.Transport does, at each dial and each attempt over plain HTTP; a nil URL: no proxy. The request has nothing
	// but the target's scheme, host and port. Nil: no proxies.
	ProxyFor func(*http.Request) (*url.URL, error)
	// Dial replaces the guarded dial in tests.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// MaxIdle is the default of Options.MaxIdle.
const MaxIdle = 4096

const (
	// maxTransports bounds the client certificates with open connections.
	maxTransports = 64
	// maxIdlePerHost bounds a client certificate's idle connections to one host and port, those of net/http also per
	// queue.
	maxIdlePerHost = 1024
)

// A Pool has the Transport without a client certificate, and those of the most recently used certificates. Certificates
// share no connections.
type Pool struct {
	options Options
	roots   atomic.Pointer[x509.CertPool]
	plain   *Transport

	mu        sync.Mutex
	certified map[*tls.Certificate]*list.Element
	order     *list.List // of *Transport, the one used last in front
}

// NewPool returns a Pool. It starts nothing.
func NewPool(o Options) *Pool {
	o.MaxIdle = cmp.Or(o.MaxIdle, MaxIdle)
	p := &Pool{options: o, certified: make(map[*tls.Certificate]*list.Element), order: list.New()}
	p.SetRoots(o.Roots)
	p.plain = p.newTransport(nil)
	return p
}

func (p *Pool) newTransport(certificate *tls.Certificate) *Transport {
	return newTransport(&dialer{
		Options:     p.options,
		net:         net.Dialer{Resolver: p.options.Resolver, KeepAlive: 30 * time.Second},
		roots:       &p.roots,
		tls:         newTLS(),
		certificate: certificate,
		http1:       newHostSet(maxKnownHosts),
	})
}

// SetRoots replaces Options.Roots for new connections.
func (p *Pool) SetRoots(roots *x509.CertPool) { p.roots.Store(roots) }

// Get returns the Transport of a client certificate; nil: without one. The caller must release it with Put.
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

// drop removes a Transport. Its connections are closed after its last request.
func (p *Pool) drop(element *list.Element) {
	old, _ := p.order.Remove(element).(*Transport)
	delete(p.certified, old.dialer.certificate)
	old.dropped = true
	old.closeIdle()
}

// Put releases a Transport.
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
