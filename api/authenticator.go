package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
)

// stored finds stored tokens and namespaces.
type stored interface {
	// Authenticate returns the principal of a token by its text. Errors are access.ErrMalformed, access.ErrUnknown,
	// *access.ExpiredError and those of package store.
	Authenticate(ctx context.Context, text string) (*access.Principal, error)
	// HasNamespace reports whether a namespace exists.
	HasNamespace(ctx context.Context, name string) (bool, error)
}

// namespaceHeader is the header in which a root chooses a namespace.
const namespaceHeader = "Ringback-Namespace"

// authenticator finds the principal of requests. Failures are logged, at most one a second. Addresses from which many
// wrong tokens come are answered 429, late. A correct token is never refused or delayed for that.
type authenticator struct {
	roots   hashes
	metrics hashes
	stored  stored
	// root is the principal of root tokens, open that of requests without a token; nil: a token is required.
	root, open *access.Principal
	failures   failures
	failed     logs.Limited
}

// newAuthenticator returns an Authenticator.
func newAuthenticator(o AccessOptions, stored stored, log *slog.Logger) *authenticator {
	a := &authenticator{
		stored: stored, root: access.NewRoot(access.Root, job.DefaultNamespace),
		failed: logs.Limited{Logger: log},
	}
	a.roots.watch(o.Tokens, o.WatchTokens)
	a.metrics.watch(o.MetricsTokens, o.WatchMetricsTokens)
	if len(o.Tokens) == 0 {
		a.open = access.NewRoot("", job.DefaultNamespace)
	}
	return a
}

// hashes are those of tokens that can be replaced.
type hashes struct{ current atomic.Pointer[[]access.Hash] }

// watch sets the tokens, and has them replaced if watch is not nil.
func (h *hashes) watch(tokens []logs.Secret, watch func(func([]logs.Secret))) {
	h.replace(tokens)
	if watch != nil {
		watch(h.replace)
	}
}

func (h *hashes) replace(tokens []logs.Secret) {
	all := make([]access.Hash, len(tokens))
	for i, text := range tokens {
		all[i] = access.HashOf(string(text))
	}
	h.current.Store(&all)
}

func (h *hashes) isEmpty() bool { return len(*h.current.Load()) == 0 }

func (h *hashes) has(hash access.Hash) bool {
	return slices.ContainsFunc(*h.current.Load(), hash.Equal)
}

// Principal returns the principal of a request, or a problem. A token that is sent is always checked.
func (a *authenticator) Principal(ctx context.Context, r *http.Request) (*access.Principal, error) {
	p, err := a.find(ctx, r)
	if err != nil {
		return nil, err
	}
	chosen := r.Header[namespaceHeader]
	switch {
	case len(chosen) == 0 || len(chosen) == 1 && chosen[0] == p.Namespace:
		return p, nil
	case !p.Root:
		return nil, response.NewProblem(response.Forbidden,
			"the token is for the namespace "+p.Namespace+": only a root token may choose another with "+
				namespaceHeader)
	case len(chosen) > 1 || !job.IsNamespace(chosen[0]):
		return nil, response.NewProblem(response.InvalidRequest,
			namespaceHeader+" must name one namespace: 1 to 32 of a-z 0-9 and -, not beginning with -")
	}
	if chosen[0] != job.DefaultNamespace {
		known, err := a.stored.HasNamespace(ctx, chosen[0])
		if err != nil {
			return nil, err
		}
		if !known {
			return nil, response.NewProblem(response.NotFound,
				"no such namespace: create "+chosen[0]+" first")
		}
	}
	return access.NewRoot(p.Actor, chosen[0]), nil
}

// find returns the principal of the token in a request.
func (a *authenticator) find(ctx context.Context, r *http.Request) (*access.Principal, error) {
	if a.open != nil && len(r.Header["Authorization"]) == 0 {
		return a.open, nil
	}
	text, err := a.bearer(ctx, r)
	if err != nil {
		return nil, err
	}
	if a.roots.has(access.HashOf(text)) {
		return a.root, nil
	}
	err = access.ErrUnknown
	if strings.HasPrefix(text, access.Prefix) {
		var p *access.Principal
		if p, err = a.stored.Authenticate(ctx, text); err == nil {
			return p, nil
		}
	}
	expired, isExpired := errors.AsType[*access.ExpiredError](err)
	switch {
	case isExpired:
		return nil, a.unauthorized(r, response.TokenExpired, "the token expired at "+expired.At.Format(time.RFC3339)+
			": create another")
	case errors.Is(err, access.ErrMalformed):
		return nil, a.wrong(ctx, r, response.TokenMalformed, "the token is mistyped or cut off: its checksum is wrong")
	case errors.Is(err, access.ErrUnknown):
		return nil, a.wrong(ctx, r, response.TokenUnknown, "no such token: it is wrong or was revoked")
	}
	return nil, err
}

// bearer returns the token in a request, or a problem.
func (a *authenticator) bearer(ctx context.Context, r *http.Request) (string, error) {
	given := r.Header["Authorization"]
	if len(given) == 0 {
		return "", a.unauthorized(r, response.TokenMissing,
			"a token is required: send the header Authorization: Bearer <token>")
	}
	scheme, text, _ := strings.Cut(given[0], " ")
	text = strings.TrimSpace(text)
	if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") || text == "" {
		return "", a.wrong(ctx, r, response.TokenMalformed, "the header Authorization must be one Bearer <token>")
	}
	return text, nil
}

// CheckMetrics returns a problem if a request may not read the metrics. It asks no store, which may be away.
func (a *authenticator) CheckMetrics(r *http.Request) error {
	if a.metrics.isEmpty() {
		return nil
	}
	ctx := r.Context()
	text, err := a.bearer(ctx, r)
	if err != nil {
		return err
	}
	hash := access.HashOf(text)
	if a.metrics.has(hash) || a.roots.has(hash) {
		return nil
	}
	return a.wrong(ctx, r, response.TokenUnknown,
		"no such token: /metrics requires one of --metrics-token-file, or a root token")
}

// wrong is unauthorized for a wrong token, and too many of them. Those wait, without a place among the requests in
// flight, so that guesses of a token take time and the others behind the address notice nothing.
func (a *authenticator) wrong(ctx context.Context, r *http.Request, code response.Code, detail string) error {
	wait := a.failures.add(r.RemoteAddr, time.Now())
	if wait == 0 {
		return a.unauthorized(r, code, detail)
	}
	p := response.NewProblem(response.TooManyFailures, "too many wrong tokens came from this address: "+detail)
	p.RetryAfter = failureEvery
	a.failed.Warn("authentication failed", requestAttrs(r, "reason", string(p.Code))...)
	limits.Pause(ctx, wait)
	return p
}

// unauthorized logs a failure and returns its problem.
func (a *authenticator) unauthorized(r *http.Request, code response.Code, detail string) error {
	a.failed.Warn("authentication failed", requestAttrs(r, "reason", string(code))...)
	return response.NewProblem(code, detail)
}

// setHeaders sets the headers of the answer to a request without a principal.
func setHeaders(w http.ResponseWriter, r *http.Request) {
	closeUnread(w, r)
	w.Header().Set("WWW-Authenticate", `Bearer realm="ringback"`)
}
