package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/ringback/ringback/app"
)

// Bounds of an inbox.
const (
	inboxIDs   = 10_000  // ids whose attempts are counted; the oldest is forgotten
	inboxShown = 200     // bytes of a body that are printed
	inboxBody  = 1 << 20 // bytes of a body that are read
	// inboxConnections are open at a time: more than attempts of one lane, and few of the descriptors of ringback dev.
	inboxConnections = 128
	flakyFailing     = 2 // attempts of an id that /flaky fails
)

// An inbox is a receiver to try things out with. It prints a line for every request, and answers 200, but at /flaky it
// fails the first two attempts of every id with 500.
//
// Safe for concurrent use. It remembers the last 10,000 ids.
type inbox struct {
	listener net.Listener
	server   *http.Server

	mu   sync.Mutex // guards what follows, and keeps lines whole
	out  io.Writer
	seen map[string]int // id → attempts
	ids  []string       // a ring, the oldest at next once it is full
	next int
}

// openInbox listens on addr and answers nothing yet.
func openInbox(ctx context.Context, addr string, out io.Writer) (*inbox, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("open the inbox: %w", err)
	}
	in := &inbox{listener: listener, out: out, seen: make(map[string]int)}
	in.server = &http.Server{
		Handler:           in,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	app.BoundConnections(in.server, inboxConnections, slog.New(slog.DiscardHandler))
	return in, nil
}

// addr is where the inbox listens.
func (in *inbox) addr() string { return in.listener.Addr().String() }

// serve answers until close is called.
func (in *inbox) serve() error {
	if err := in.server.Serve(in.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the inbox: %w", err)
	}
	return nil
}

// close lets the requests under way end, for at most a second.
func (in *inbox) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := in.server.Shutdown(ctx); err != nil {
		_ = in.server.Close() // what is left is cut off, which is what a caller that hangs gets
	}
	_ = in.listener.Close() // for an inbox that never served
}

// ServeHTTP answers one callback and prints it.
func (in *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, inboxBody))
	if err != nil {
		return // the caller went away: there is nobody to answer
	}
	id := r.Header.Get("webhook-id")

	in.mu.Lock()
	defer in.mu.Unlock()
	status := http.StatusOK
	if n := in.count(id); r.URL.Path == "/flaky" && n <= flakyFailing {
		status = http.StatusInternalServerError
	}
	fmt.Fprintf(in.out, "%s  inbox  %s %s  id %s  attempt %s  → %d  %s\n", time.Now().Format("15:04:05.000"),
		r.Method, printable([]byte(r.URL.Path)), printable([]byte(orNone(id))),
		printable([]byte(orNone(r.Header.Get("Ringback-Attempt")))), status, printable(body))
	w.WriteHeader(status)
}

// count notes an attempt of an id and says how many there were.
func (in *inbox) count(id string) int {
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

// printable makes text safe for a terminal: one line, bounded, control characters escaped.
func printable(text []byte) string {
	cut := ""
	if len(text) > inboxShown {
		text, cut = text[:inboxShown], "…"
	}
	quoted := strconv.Quote(string(text))
	quoted = quoted[1 : len(quoted)-1]
	return string(bytes.ReplaceAll([]byte(quoted), []byte(`\"`), []byte(`"`))) + cut
}

// orNone stands in for what a request did not carry.
func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
