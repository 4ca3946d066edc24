// Package inbox is a receiver for trying things out: it prints a line for every request.
package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringback/ringback/api/limits"
)

// Bounds of an inbox.
const (
	inboxIDs     = 10_000  // ids whose attempts are counted; then the oldest is evicted
	maxShownBody = 200     // bytes of a body that are printed
	maxInboxBody = 1 << 20 // bytes of a body that are read
	// inboxConnections bounds open connections: more than one lane uses, and few of the descriptors of ringback dev.
	inboxConnections = 128
	flakyFailures    = 2 // failed attempts of each id at /flaky
)

// Inbox is the receiver. It prints a line for every request and responds with 200. /flaky responds
// with 500 to the first two attempts of every id.
//
// It is safe for concurrent use and counts the attempts of the last 10,000 ids.
type Inbox struct {
	listener net.Listener
	server   *http.Server

	mu   sync.Mutex // guards the fields below and output lines
	out  io.Writer
	seen map[string]int // id → attempts
	ids  []string       // ring buffer; the oldest is at next once it is full
	next int
}

// Open listens on addr. Requests are answered from Serve on.
func Open(ctx context.Context, addr string, out io.Writer) (*Inbox, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("open the inbox: %w", err)
	}
	in := &Inbox{listener: listener, out: out, seen: make(map[string]int)}
	in.server = &http.Server{
		Handler:           in,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	limits.BoundConnections(in.server, inboxConnections, slog.New(slog.DiscardHandler))
	return in, nil
}

// Addr returns the host:port at which the inbox listens.
func (in *Inbox) Addr() string { return in.listener.Addr().String() }

// Serve serves until Close is called.
func (in *Inbox) Serve() error {
	if err := in.server.Serve(in.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the inbox: %w", err)
	}
	return nil
}

// Close waits at most a second for requests in flight, then closes their connections.
func (in *Inbox) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := in.server.Shutdown(ctx); err != nil {
		_ = in.server.Close()
	}
	_ = in.listener.Close() // for an inbox that never served
}

// ServeHTTP prints one callback and responds to it.
func (in *Inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxInboxBody))
	if err != nil {
		return // the client is gone
	}
	id := r.Header.Get("webhook-id")

	in.mu.Lock()
	defer in.mu.Unlock()
	status := http.StatusOK
	if n := in.count(id); r.URL.Path == "/flaky" && n <= flakyFailures {
		status = http.StatusInternalServerError
	}
	fmt.Fprintf(in.out, "%s  inbox  %s %s  id %s  attempt %s  → %d  %s\n", time.Now().Format("15:04:05.000"),
		r.Method, Printable(r.URL.Path), Printable(cmp.Or(id, "-")), Printable(cmp.Or(r.Header.Get("Ringback-Attempt"), "-")),
		status, Printable(string(body)))
	w.WriteHeader(status)
}

// count counts an attempt of an id and returns its number, from 1.
func (in *Inbox) count(id string) int {
	n, known := in.seen[id]
	if !known {
		if len(in.ids) < inboxIDs {
			in.ids = append(in.ids, id)
		} else {
			delete(in.seen, in.ids[in.next])
			in.ids[in.next] = id
			in.next = (in.next + 1) % inboxIDs
		}
	}
	in.seen[id] = n + 1
	return n + 1
}

// Printable makes text safe for a terminal: one line, at most maxShownBody bytes, control characters escaped.
func Printable(text string) string {
	cut := ""
	if len(text) > maxShownBody {
		text, cut = text[:maxShownBody], "…"
	}
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) + cut
}
