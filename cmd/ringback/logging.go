package main

import (
	"bytes"
	"io"
	"log/slog"
	"time"

	"github.com/ringback/ringback/internal/logs"
)

// newLogger returns a logger that writes to stderr in the format of --log. If stderr is a logbuffer.Writer, dropped
// lines are reported in the same format.
func newLogger(stderr io.Writer, format string) *slog.Logger {
	if buffer, ok := stderr.(*logs.Buffer); ok {
		buffer.SetNote(func(n uint64) []byte {
			var line bytes.Buffer
			slog.New(newLogHandler(&line, format)).Warn("log lines dropped: stderr is blocked", "count", n)
			return line.Bytes()
		})
	}
	return slog.New(newLogHandler(stderr, format))
}

func newLogHandler(w io.Writer, format string) slog.Handler {
	if format == "json" {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: replaceJSON})
	}
	return slog.NewTextHandler(w, nil)
}

// replaceJSON formats times like the API, RFC 3339 in UTC with milliseconds, and durations with a unit instead of
// slog's nanoseconds.
func replaceJSON(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindTime:
		a.Value = slog.StringValue(a.Value.Time().UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	case slog.KindDuration:
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Microsecond).String())
	default:
	}
	return a
}

// droppedCounter returns stderr's count of dropped lines; nil: stderr drops none.
func droppedCounter(stderr io.Writer) func() uint64 {
	if buffer, ok := stderr.(*logs.Buffer); ok {
		return buffer.Dropped
	}
	return nil
}
