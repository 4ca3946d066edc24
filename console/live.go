package console

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

const (
	// liveEvery is the time between two renderings of live blocks.
	liveEvery = 2 * time.Second
	// maxLivePages bounds the pages that are rendered again for their watchers: each costs what the page costs, every liveEvery.
	maxLivePages = 128
	// maxLiveTime bounds a stream, so that the session is checked again.
	maxLiveTime = time.Hour
	// heartbeat keeps proxies from closing a stream.
	heartbeat = 15 * time.Second
	// liveWriteTime bounds a write to a reader.
	liveWriteTime = 20 * time.Second
)

// liveHub renders the live blocks of the pages that are watched: once for all who watch the same page with the same token.
type liveHub struct {
	mu     sync.Mutex
	pages  map[liveKey]*livePage
	ending chan struct{} // closed at the shutdown
}

// liveKey identifies what watchers share.
type liveKey struct{ audience, base, page string }

func newLiveHub(onShutdown func(func()) func() bool) *liveHub {
	h := &liveHub{pages: make(map[liveKey]*livePage), ending: make(chan struct{})}
	onShutdown(func() { close(h.ending) })
	return h
}

// livePage is a page that is watched.
type livePage struct {
	cancel func()

	mu       sync.Mutex
	watchers int
	blocks   []liveBlock
	changed  chan struct{} // closed at the next change
	ended    bool          // the token is not valid any more
}

// liveBlock is a live block as it was rendered last.
type liveBlock struct {
	id      string
	message []byte // the lines of an event
	version int    // counts its changes, from 1
}

// join returns the page of a key, which render renders while it has watchers; nil: there are too many.
func (h *liveHub) join(key liveKey, render func(context.Context) ([]web.Block, error)) *livePage {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pages[key]
	if p == nil {
		if len(h.pages) >= maxLivePages {
			return nil
		}
		ctx, cancel := context.WithCancel(context.Background())
		p = &livePage{cancel: cancel, changed: make(chan struct{})}
		h.pages[key] = p
		go p.run(ctx, render)
	}
	p.watchers++
	return p
}

// leave ends a watch. The last one ends the page.
func (h *liveHub) leave(key liveKey, p *livePage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.watchers--; p.watchers == 0 {
		p.cancel()
		if h.pages[key] == p {
			delete(h.pages, key)
		}
	}
}

// remove makes later watchers begin a new page.
func (h *liveHub) remove(key liveKey, p *livePage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pages[key] == p {
		delete(h.pages, key)
	}
}

// run renders the blocks until ctx or the token ends.
func (p *livePage) run(ctx context.Context, render func(context.Context) ([]web.Block, error)) {
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for {
		blocks, err := render(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, client.ErrUnauthorized) || errors.Is(err, client.ErrForbidden) || errors.Is(err, client.ErrNotFound) {
			p.mu.Lock()
			p.ended = true
			p.notify()
			p.mu.Unlock()
			return
		}
		fault := []byte(`<p class="notice warn" role="status">The server cannot read this now. The page shows what it was before.</p>`)
		if err == nil {
			fault = nil
		}
		p.update(append(blocks, web.Block{ID: "live-fault", HTML: fault}))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
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

// since appends the blocks that have changed since the versions in seen, and updates these.
func (p *livePage) since(seen map[string]int) (message []byte, changed <-chan struct{}, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.blocks {
		if seen[b.id] != b.version {
			seen[b.id] = b.version
			message = append(message, b.message...)
		}
	}
	return message, p.changed, p.ended
}

// watch sends the live blocks of a page as they change.
func (c *console) watch(w http.ResponseWriter, r *http.Request, v *web.Visit, route web.Route) {
	key := liveKey{v.Audience, v.Base, v.Here}
	page := c.live.join(key, func(ctx context.Context) ([]web.Block, error) { return c.renderLive(ctx, v, route) })
	if page == nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "Too many pages are watched.", http.StatusServiceUnavailable)
		return
	}
	defer c.live.leave(key, page)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no")
	ctx, cancel := context.WithTimeout(r.Context(), maxLiveTime)
	defer cancel()
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // the server's would end the stream
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	seen := make(map[string]int)
	for {
		message, changed, ended := page.since(seen)
		if ended {
			c.live.remove(key, page)
			return
		}
		if len(message) > 0 && !send(w, rc, append(message, '\n')) {
			return
		}
		select {
		case <-changed:
		case <-beat.C:
			if !send(w, rc, []byte(":\n\n")) {
				return
			}
		case <-ctx.Done():
			return
		case <-c.live.ending:
			return
		}
	}
}

// send writes to a reader, and reports whether they are still there.
func send(w http.ResponseWriter, rc *http.ResponseController, message []byte) bool {
	_ = rc.SetWriteDeadline(time.Now().Add(liveWriteTime)) // not all writers have one
	if _, err := w.Write(message); err != nil {
		return false
	}
	return rc.Flush() == nil
}

// renderLive renders the live blocks of a page again.
func (c *console) renderLive(ctx context.Context, visited *web.Visit, route web.Route) ([]web.Block, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTime)
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
	if !ok {
		return nil, errors.New("the page has no live blocks")
	}
	blocks, err := c.views[page.View].Blocks(c.view(nil, v.Request, &v, page))
	if err != nil {
		c.log.Error("live blocks of the console failed", "view", page.View, "err", err)
	}
	return blocks, err
}
