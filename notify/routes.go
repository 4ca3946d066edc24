package notify

import (
	"container/list"
	"crypto/tls"
	"sync"

	"github.com/hashicorp/go-retryablehttp"
)

// maxRoutes is how many client certificates have connections of their own at a time.
const maxRoutes = 64

// A route is the connections that attempts with the same client certificate share, or those without one.
type route struct {
	certificate *tls.Certificate
	transport   *transport
	alone       *transport // gives each request a connection of its own
	resender    *retryablehttp.Client

	// Guarded by the mutex of its routes.
	uses    int
	dropped bool
}

func newRoute(o Options, d *dialer) *route {
	r := &route{certificate: d.certificate, transport: newTransport(o, d, false), alone: newTransport(o, d, true)}
	r.resender = newResender(r.transport, r.alone)
	return r
}

// closeIdle closes what no attempt uses, and ends dials that none waits for.
func (r *route) closeIdle() {
	r.transport.closeIdle()
	r.alone.closeIdle()
}

// routes hold the one without a certificate, and those of the certificates used last: what one certificate opened,
// another one must not use.
type routes struct {
	open  func(*tls.Certificate) *route
	plain *route

	mu        sync.Mutex
	certified map[*tls.Certificate]*list.Element
	order     *list.List // of *route, the one used last in front
}

func newRoutes(open func(*tls.Certificate) *route) *routes {
	return &routes{open: open, plain: open(nil), certified: make(map[*tls.Certificate]*list.Element), order: list.New()}
}

// take gives the route of a certificate, which is nil for none, until it is given back.
func (r *routes) take(certificate *tls.Certificate) *route {
	if certificate == nil {
		return r.plain
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	element, known := r.certified[certificate]
	if !known {
		element = r.order.PushFront(r.open(certificate))
		r.certified[certificate] = element
	}
	r.order.MoveToFront(element)
	taken, _ := element.Value.(*route)
	taken.uses++
	if r.order.Len() > maxRoutes {
		r.drop(r.order.Back())
	}
	return taken
}

// drop forgets a route. What its attempts under way have open is closed when the last of them is over.
func (r *routes) drop(element *list.Element) {
	old, _ := r.order.Remove(element).(*route)
	delete(r.certified, old.certificate)
	old.dropped = true
	old.closeIdle()
}

// give ends the use of a route.
func (r *routes) give(taken *route) {
	if taken == r.plain {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	taken.uses--
	if taken.dropped && taken.uses == 0 {
		taken.closeIdle()
	}
}

// close closes what is idle, and ends dials that nobody waits for.
func (r *routes) close() {
	r.plain.closeIdle()
	r.mu.Lock()
	defer r.mu.Unlock()
	for element := r.order.Front(); element != nil; element = element.Next() {
		if one, ok := element.Value.(*route); ok {
			one.closeIdle()
		}
	}
}
