package api

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/ringback/ringback/api/request"
)

// Limits of the server. A batch of 16 MiB over a slow line is what the longest are for: the time to write runs from the
// end of the request's header. A stream of jobs sets limits of its own.
const (
	headerTimeout = 5 * time.Second
	writeTimeout  = request.ReadTimeout + 2*request.Timeout
	idleTimeout   = 2 * time.Minute
	headerBytes   = 16 << 10
)

// Server makes a server for the handler with every limit set but that of LimitHeaders, which is the listener's; a handler made by New has its streams end at a Shutdown.
// Its own complaints go to the logger as warnings.
func Server(h http.Handler, logger *slog.Logger) *http.Server {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       request.ReadTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytes,
		ConnState:         request.ExpectHeader,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	if g, ok := h.(*shutdownHandler); ok {
		s.RegisterOnShutdown(g.end)
	}
	return s
}
