package api

import (
	"log/slog"
	"net/http"
	"time"
)

// Limits of the server. A batch of 16 MiB over a slow line is what the longest are for: the time to write runs from the
// end of the request's header.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = time.Minute
	writeTimeout  = readTimeout + 2*requestTimeout
	idleTimeout   = 2 * time.Minute
	headerBytes   = 64 << 10
)

// Server makes a server for the handler with every limit set. Its own complaints go to the logger as warnings.
func Server(h http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}
