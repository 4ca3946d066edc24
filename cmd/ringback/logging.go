package main

import (
	"bytes"
	"io"
	"log/slog"
	"time"

	"github.com/ringback/ringback/internal/logbuffer"
)

// newLogger returns a logger that writes to stderr in the form of --log. Where stderr is a logbuffer.Writer, the lines that
// it drops are reported in the same form.
func newLogger(stderr io.Writer, form string) *slog.Logger {
	if buffer, ok := stderr.(*logbuffer.Writer); ok {
		buffer.SetNote(func(n uint64) []byte {
			var line bytes.Buffer
			slog.New(newLogHandler(&line, form)).Warn("log lines dropped: stderr did not take them in time", "count", n)
			return line.Bytes()
		})
	}
	return slog.New(newLogHandler(stderr, form))
}

func newLogHandler(w io.Writer, form string) slog.Handler {
	if form == "json" {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: replaceJSON})
	}
	return slog.NewTextHandler(w, nil)
}

// replaceJSON writes times as the API does, RFC 3339 in UTC with milliseconds, and durations with their unit. slog's own
// form of both is nanoseconds.
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

// droppedLines returns what counts the lines that stderr dropped; nil where it drops none.
func droppedLines(stderr io.Writer) func() uint64 {
	if buffer, ok := stderr.(*logbuffer.Writer); ok {
		return buffer.Dropped
	}
	return nil
}
