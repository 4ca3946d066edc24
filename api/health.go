package api

import (
	"context"
	_ "embed" // for openapi.yaml
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/store"
)

// openAPI is the API's contract.
//
//go:embed openapi.yaml
var openAPI []byte

// openAPIDocument serves openAPI.
var openAPIDocument = newOpenAPIPage(openAPI)

// readyTimeout bounds a readiness check. A request waits for two at most, which is less than the 3 s of probes: those
// of packaging/kubernetes, and of ringback health.
const readyTimeout = 1200 * time.Millisecond

// readyFor is how long a check that found a store ready answers other requests, too. A check writes to the stores, and
// anybody may ask.
const readyFor = 500 * time.Millisecond

// readiness has the last result. It is safe for concurrent use; one check runs at a time.
type readiness struct {
	turn chan struct{} // holds a value while a check runs
	last []store.Readiness
	// began is when the check of last began, and until how long it answers other requests, if it found a store ready.
	began, until time.Time
}

// get returns the last result if it holds, which it never does while the process is closing, or that of a check that
// began after the call: so nobody waits for more than two checks. It returns the error of ctx when that ends before its
// turn.
func (c *readiness) get(ctx context.Context, service Service, closing func() bool) ([]store.Readiness, error) {
	called := time.Now()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	began := time.Now()
	if !closing() && began.Before(c.until) || c.began.After(called) {
		return c.last, nil
	}
	checking, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), readyTimeout, response.ErrTimeout)
	defer cancel()
	c.last, c.began, c.until = service.Readiness(checking), began, time.Time{}
	if anyReady(c.last) {
		c.until = time.Now().Add(readyFor)
	}
	return c.last, nil
}

// anyReady reports whether the process is ready: one store is.
func anyReady(all []store.Readiness) bool {
	return slices.ContainsFunc(all, func(s store.Readiness) bool { return s.Err == nil })
}

// alive answers 200 while the process runs.
func (a *api) alive(w http.ResponseWriter, _ *http.Request) error {
	answerWord(w, "status", "alive")
	return nil
}

// ready answers 200 if one store is ready, else 503 with the reasons.
func (a *api) ready(w http.ResponseWriter, r *http.Request) error {
	all, err := a.readiness.get(r.Context(), a.service, a.closing)
	if err != nil {
		return err
	}
	reasons := make([]string, len(all))
	for i, s := range all {
		if s.Err != nil {
			reasons[i] = notReadyReason(s.Err)
			a.log.Debug("store not ready", "store", s.Store, "err", s.Err)
		}
	}
	if !anyReady(all) {
		if len(all) > 1 {
			for i, s := range all {
				reasons[i] = s.Store + ": " + reasons[i]
			}
		}
		return response.NewProblem(response.NotReady, "not ready: "+strings.Join(reasons, "; "))
	}
	version := ""
	if fromThisMachine(r) {
		version = a.version
	}
	response.Answer(w, http.StatusOK, func(o *response.Buffer) {
		o.Text("status", "ready")
		o.TextOrNull("version", version)
		o.Array("stores")
		for i, s := range all {
			o.Open()
			o.Text("name", s.Store)
			o.Bool("ready", s.Err == nil)
			o.TextOrNull("detail", reasons[i])
			o.Close()
		}
		o.CloseArray()
	})
	return nil
}

// fromThisMachine reports whether a request comes from an address of this machine. Those that a proxy here passes on
// do.
func fromThisMachine(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	own, isTCP := local.(*net.TCPAddr)
	return peer.Addr().Unmap().IsLoopback() || isTCP && peer.Addr().Unmap() == own.AddrPort().Addr().Unmap()
}

// notReadyReason returns the reason for operators: a driver's errors may contain addresses.
func notReadyReason(err error) string {
	if e, ok := errors.AsType[*store.UnavailableError](err); ok {
		return e.Reason
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the store does not answer"
	}
	return err.Error()
}

// serveMetrics serves the metrics, if there are any.
func (a *api) serveMetrics(w http.ResponseWriter, r *http.Request) error {
	if a.metrics == nil {
		return a.notFound(w, r)
	}
	if err := a.callers.CheckMetrics(r); err != nil {
		setHeaders(w, r)
		return err
	}
	a.metrics.ServeHTTP(w, r)
	return nil
}

// serveVersion answers with the version of the program, of its source and of its compiler, and the name of the process.
func (a *api) serveVersion(w http.ResponseWriter, _ *http.Request) error {
	response.Answer(w, http.StatusOK, func(o *response.Buffer) {
		o.Text("version", a.version)
		o.TextOrNull("commit", a.commit)
		o.TextOrNull("go_version", a.goVersion)
		o.TextOrNull("process", a.process)
	})
	return nil
}

// answerWord answers with one string.
func answerWord(w http.ResponseWriter, name, word string) {
	response.Answer(w, http.StatusOK, func(o *response.Buffer) { o.Text(name, word) })
}
