package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/internal/logs"
)

const (
	// liveEvery is the time between two renderings of live blocks.
	liveEvery = 2 * time.Second
	// maxAudienceWatchers bounds the streams of a token, so that it leaves some of its namespace to others.
	maxAudienceWatchers = 32
	// maxLiveTime bounds a stream, so that the session is checked again.
	maxLiveTime = 10 * time.Minute
	// heartbeat keeps proxies from closing a stream, and tells browsers that it is there: they open another after 40 s
	// without.
	heartbeat = 15 * time.Second
	// liveWriteTime bounds a write to a reader.
	liveWriteTime = 20 * time.Second
)

// errNotLive is the error of a page without live blocks.
var errNotLive = &client.Problem{Status: http.StatusNotFound, Code: "not_found", Detail: "The page has no live blocks."}

// errTooManyPages is the error of a token with maxAudienceWatchers.
var errTooManyPages = fmt.Errorf("too many %s: the token watches %d; %s",
	capacity.WatchedPages.Name, maxAudienceWatchers, capacity.WatchedPages.Advice)

// liveHub renders the live blocks of the pages that are watched: once for all who watch the same page with the same
// token.
type liveHub struct {
	watchers  *capacity.Semaphore // streams: each may be of another page, which costs what it costs, every liveEvery
	rendering *capacity.Semaphore // pages that are being rendered
	ending    chan struct{}       // closed at the shutdown
	failed    logs.Limited

	mu    sync.Mutex
	pages map[liveKey]*livePage
}

// liveKey identifies what watchers share.
type liveKey struct{ audience, namespace, base, page string }

func (k *liveKey) holder() capacity.Holder { return capacity.Holder{Namespace: k.namespace} }

func newLiveHub(log *slog.Logger, onShutdown func(func()) func() bool) *liveHub {
	h := &liveHub{
		watchers: capacity.WatchedPages.Semaphore(0), rendering: capacity.RenderedPages.Semaphore(0),
		ending: make(chan struct{}), pages: make(map[liveKey]*livePage), failed: logs.Limited{Logger: log},
	}
	onShutdown(func() { close(h.ending) })
	return h
}

// livePage is a page that is watched.
type livePage struct {
	cancel   func()
	watchers int // guarded by the hub

	mu      sync.Mutex
	blocks  []liveBlock
	changed chan struct{} // closed at the next change
	err     error         // why it is not rendered any more
}

// liveBlock is a live block as it was rendered last.
type liveBlock struct {
	id      string
	message []byte // the lines of an event
	version int    // counts its changes, from 1
}

// join returns the page of a key, which render renders while it has watchers. End it with leave. Errors:
// *capacity.FullError and errTooManyPages.
func (h *liveHub) join(key liveKey, render func(context.Context) ([]web.Block, error)) (*livePage, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	own := 0
	for k, p := range h.pages {
		if k.audience == key.audience {
			own += p.watchers
		}
	}
	if own >= maxAudienceWatchers {
		return nil, errTooManyPages
	}
	if err := h.watchers.TryAcquire(key.holder(), 1); err != nil {
		return nil, err
	}
	p := h.pages[key]
	if p == nil {
		ctx, cancel := context.WithCancel(context.Background())
		p = &livePage{cancel: cancel, changed: make(chan struct{})}
		h.pages[key] = p
		go h.run(ctx, key, p, render)
	}
	p.watchers++
	return p, nil
}

// leave ends a watch. The last one ends the page.
func (h *liveHub) leave(key liveKey, p *livePage) {
	h.watchers.Release(key.holder(), 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.watchers--; p.watchers == 0 {
		p.cancel()
		if h.pages[key] == p {
			delete(h.pages, key)
		}
	}
}

// end ends the streams of a token, whose hash begins the audience.
func (h *liveHub) end(token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, p := range h.pages {
		if strings.HasPrefix(key.audience, token+"@") {
			delete(h.pages, key)
			p.cancel()
			p.stop(client.ErrUnauthorized)
		}
	}
}

// run renders the blocks until ctx ends, or the page cannot be shown any more.
func (h *liveHub) run(
	ctx context.Context, key liveKey, p *livePage, render func(context.Context) ([]web.Block, error),
) {
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for {
		if h.rendering.Acquire(ctx, key.holder(), 1) != nil {
			return
		}
		blocks, err := render(ctx)
		h.rendering.Release(key.holder(), 1)
		if ctx.Err() != nil {
			return
		}
		if isFinal(err) {
			h.mu.Lock()
			if h.pages[key] == p {
				delete(h.pages, key) // later watchers begin anew
			}
			h.mu.Unlock()
			p.stop(err)
			return
		}
		var fault []byte
		if err != nil {
			fault = []byte(`<p class="notice warn" role="status">Live updates fail now. The page shows what was true ` +
				`before.</p>`)
			if _, ok := errors.AsType[*client.Problem](err); !ok {
				h.failed.Warn("live blocks of a console page failed, repeating", "page", key.page, "err", err)
			}
		}
		p.update(append(blocks, web.Block{ID: "live-fault", HTML: fault}))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// isFinal reports whether rendering again would fail again: the API refuses the request for what it is, or for whose it
// is.
func isFinal(err error) bool {
	p, ok := errors.AsType[*client.Problem](err)
	return ok && p.Status >= 400 && p.Status < 500 && p.Status != http.StatusTooManyRequests
}

// stop ends the streams of the page's watchers.
func (p *livePage) stop(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	p.notify()
}

// update replaces blocks that have changed.
func (p *livePage) update(blocks []web.Block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := false
	for _, b := range blocks {
		message := newMessage(b)
		i := 0
		for i < len(p.blocks) && p.blocks[i].id != b.ID {
			i++
		}
		if i == len(p.blocks) {
			p.blocks = append(p.blocks, liveBlock{id: b.ID})
		}
		if !bytes.Equal(p.blocks[i].message, message) {
			p.blocks[i].message = message
			p.blocks[i].version++
			changed = true
		}
	}
	if changed {
		p.notify()
	}
}

// notify wakes the watchers. p.mu is held.
func (p *livePage) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// newMessage returns the lines of a server-sent event that replaces an element.
func newMessage(b web.Block) []byte {
	var m bytes.Buffer
	html := []byte(`<hx-partial hx-target="#` + b.ID + `" hx-swap="outerMorph"><div id="` + b.ID + `">`)
	html = append(append(html, bytes.TrimSpace(b.HTML)...), `</div></hx-partial>`...)
	html = bytes.ReplaceAll(html, []byte("\r"), []byte("\n"))
	for line := range bytes.SplitSeq(html, []byte("\n")) {
		m.WriteString("data: ")
		m.Write(line)
		m.WriteByte('\n')
	}
	return m.Bytes()
}

// since returns the blocks that have changed since the versions in seen, and updates these. err says that the page has
// ended.
func (p *livePage) since(seen map[string]int) (message []byte, changed <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.blocks {
		if seen[b.id] != b.version {
			seen[b.id] = b.version
			message = append(message, b.message...)
		}
	}
	return message, p.changed, p.err
}

// watch sends the live blocks of a page as they change.
func (c *console) watch(w http.ResponseWriter, r *http.Request, v *web.Visit, route web.Route) {
	key := liveKey{v.Audience, v.Namespace, v.Base, v.Here}
	page, err := c.live.join(key, func(ctx context.Context) ([]web.Block, error) { return c.renderLive(ctx, v, route) })
	if err != nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer c.live.leave(key, page)
	ctx, cancel := context.WithTimeout(r.Context(), maxLiveTime)
	defer cancel()
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // the server's would end the stream
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	seen := make(map[string]int)
	for begun := false; ; {
		message, changed, err := page.since(seen)
		switch {
		case err != nil && !begun:
			c.refuseStream(w, err)
			return
		case err != nil:
			return
		case len(message) > 0:
			if !begun {
				h := w.Header()
				h.Set("Content-Type", "text/event-stream; charset=utf-8")
				h.Set("X-Accel-Buffering", "no")
				begun = true
			}
			if !send(w, rc, append(message, '\n')) {
				return
			}
		}
		select {
		case <-changed:
		case <-beat.C: // a comment would not reach the script
			if begun && !send(w, rc, []byte("event: beat\ndata:\n\n")) {
				return
			}
		case <-ctx.Done():
			return
		case <-c.live.ending:
			return
		}
	}
}

// refuseStream answers a stream that cannot begin, by a status: browsers would open one again that only ends.
func (c *console) refuseStream(w http.ResponseWriter, err error) {
	status := http.StatusUnauthorized
	if p, ok := errors.AsType[*client.Problem](err); ok {
		status = p.Status
	}
	http.Error(w, "The page is not live.", status)
}

// send writes to a reader, and reports whether they are still there.
func send(w http.ResponseWriter, rc *http.ResponseController, message []byte) bool {
	_ = rc.SetWriteDeadline(time.Now().Add(liveWriteTime)) // not all writers have one
	if _, err := w.Write(message); err != nil {
		return false
	}
	return rc.Flush() == nil
}

// renderLive renders the live blocks of a page again. A panic is an error: the request that began it may be over.
func (c *console) renderLive(ctx context.Context, visited *web.Visit, route web.Route) (blocks []web.Block, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the page panicked: %v\n%s", v, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, placeKey{}, placeOf(visited.Request)), pageTime)
	defer cancel()
	v := *visited
	v.Request, v.Now, v.Live = visited.Request.WithContext(ctx), c.now(), true
	if _, err := v.API.Whoami(ctx); err != nil { // the token may have been revoked, or have expired
		return nil, err
	}
	answer, err := route.Serve(&v)
	if err != nil {
		return nil, err
	}
	page, ok := answer.(*web.Page)
	if !ok || c.views[page.View] == nil || !c.views[page.View].HasLive() {
		return nil, errNotLive
	}
	return c.views[page.View].Blocks(c.view(v.Request, &v, page))
}
