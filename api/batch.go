// This part of the package registers many jobs in one request: batches in JSON and streams in NDJSON, with a result for
// each job.

package api

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// batchOptions configure a Handler. All are required.
type batchOptions struct {
	// Register registers jobs of the namespace of a request's context. It returns a result per job, in order.
	Register func(ctx context.Context, jobs []job.New) []store.RoutedResult
	// Callers finds whose a stream is, again and again while it lasts.
	Callers *authenticator
	// Holder returns on whose behalf a request is served.
	Holder func(*http.Request) capacity.Holder
	// MaxBody bounds a job's body, in bytes.
	MaxBody int64
	// OnShutdown registers a function for the server's shutdown, like context.AfterFunc.
	OnShutdown func(func()) (stop func() bool)
	// Overloaded logs a problem if it is that of an overload.
	Overloaded func(*http.Request, *response.Problem)
	Logger     *slog.Logger
}

// A batchHandler registers batches and streams. It is safe for concurrent use.
type batchHandler struct {
	registerAll func(ctx context.Context, jobs []job.New) []store.RoutedResult
	callers     *authenticator
	holder      func(*http.Request) capacity.Holder
	maxBody     int64
	onShutdown  func(func()) (stop func() bool)
	overloaded  func(*http.Request, *response.Problem)
	log         *slog.Logger
	// streams counts streams in flight. Each may fill a resultBuffer and a group of lines.
	streams *capacity.Semaphore
}

// newBatch returns a Handler.
func newBatch(o batchOptions) *batchHandler {
	return &batchHandler{
		registerAll: o.Register, callers: o.Callers, holder: o.Holder, maxBody: o.MaxBody,
		onShutdown: o.OnShutdown, overloaded: o.Overloaded, log: o.Logger,
		streams: capacity.Streams.Semaphore(0),
	}
}

// batchStatus returns the status or the problem of a registration.
func batchStatus(result *store.RoutedResult) (status int, p *response.Problem) {
	switch {
	case result.Err != nil:
		return 0, response.FromError(result.Err)
	case result.Outcome == store.Created:
		return http.StatusCreated, nil
	default:
		return http.StatusOK, nil
	}
}
