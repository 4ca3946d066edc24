// Package inbox is a receiver for trying things out. It prints every request, verifies its signature, and answers as
// its path says.
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
	writeTimeout     = 30 * time.Second
)

// Inbox is the receiver. It answers 200, or as the path of the URL says: see answerTo.
//
// It is safe for concurrent use, counts the attempts of the last 10,000 ids, and keeps the newest 50 requests.
type Inbox struct {
	listener net.Listener
	server   *http.Server
	keys     keysFile

	mu   sync.Mutex // guards the fields below and output lines
	out  io.Writer
	seen map[string]int // id → attempts
	ids  ring[string]   // of seen

	added  []key // by AddKey
	recent ring[Request]
	kept   int64 // requests so far
}

// Open listens on addr. Requests are answered from Serve on, and printed to out. The file has the secrets and public
// keys that verify signatures, one a line; empty: none are verified.
func Open(ctx context.Context, addr, keys string, out io.Writer) (*Inbox, error) {
	file := keysFile(keys)
	if _, err := file.read(); err != nil {
		return nil, fmt.Errorf("open the inbox: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("open the inbox: %w", err)
	}
	in := &Inbox{listener: listener, keys: file, out: out, seen: make(map[string]int)}
	in.server = &http.Server{
		Handler:           in,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      writeTimeout,
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
	body, err := io.ReadAll(io.LimitReader(r.Body, maxInboxBody+1))
	if err != nil {
		return // the client is gone
	}
	id, at := r.Header.Get("webhook-id"), time.Now()
	to := answerTo(r.URL.Path, in.count(id))
	signature, keys := in.verify(r.Header, body) // before the wait, after which its timestamp may be too old
	left := !to.wait(w, r)
	answered := strconv.Itoa(to.status)
	if to.delay > 0 {
		answered += " after " + to.delay.String()
	}
	if left {
		answered = "nothing, the client did not wait for " + to.delay.String()
	}
	in.print(newRequest(r, at, body, signature, answered), "%s  inbox  %s %s  id %s  attempt %s%s  → %s  %s\n%s",
		time.Now().Format("15:04:05.000"), r.Method, Printable(r.URL.Path), Printable(cmp.Or(id, "-")),
		Printable(cmp.Or(r.Header.Get("Ringback-Attempt"), "-")),
		signature.text(keys), answered, Printable(string(body)), headersLine(r.Header))
	if !left {
		w.WriteHeader(to.status)
		_, _ = io.WriteString(w, to.text)
	}
}

// print prints a request at once, and keeps it.
func (in *Inbox) print(kept Request, format string, args ...any) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.keep(kept)
	fmt.Fprintf(in.out, format, args...)
}

// count counts an attempt of an id and returns its number, from 1.
func (in *Inbox) count(id string) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	n, known := in.seen[id]
	if !known {
		if old, full := in.ids.add(id, inboxIDs); full {
			delete(in.seen, old)
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
