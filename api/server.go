package api

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/ringback/ringback/api/limits"
)

// Timeouts and limits of the server, long enough for a batch of 16 MiB over a slow connection. The write timeout runs
// from the end of the request's header. Streams have their own.
const (
	headerTimeout = 5 * time.Second
	writeTimeout  = limits.ReadTimeout + 2*limits.Timeout
	headerBytes   = 16 << 10
)

// Server returns a server with every limit but LimitHeaders, which is set on the listener. Its Shutdown ends the
// streams of a handler made by New. Errors of net/http are logged as warnings.
func Server(h http.Handler, logger *slog.Logger) *http.Server {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       limits.ReadTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       limits.IdleTimeout,
		MaxHeaderBytes:    headerBytes,
		ConnState:         limits.ExpectHeader,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	if g, ok := h.(*shutdownHandler); ok {
		s.RegisterOnShutdown(g.end)
	}
	return s
}

// A shutdownHandler is the outermost handler. It closes connections of a process that is about to stop, and ends its
// streams.
type shutdownHandler struct {
	next    http.Handler
	closing func() bool
	// end ends streams.
	end func()
}

// ServeHTTP serves a request.
func (g *shutdownHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	closeWhile(g.closing, w)
	g.next.ServeHTTP(w, r)
}

// closeWhile makes an answer close its connection while the process is about to stop, so that no later request meets a
// closed port.
func closeWhile(closing func() bool, w http.ResponseWriter) {
	if closing() {
		w.Header().Set("Connection", "close")
	}
}
