package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/logs"
)

func TestLogger_JSONHasMillisecondsAndUnits(t *testing.T) {
	var out bytes.Buffer
	newLogger(&out, "json").Info("stopped", "after", 1500*time.Millisecond, "at",
		time.Unix(0, 123456789).In(time.FixedZone("", 7200)))
	var line struct{ Time, Msg, After, At string }
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	require.Equal(t, "stopped", line.Msg)
	require.Equal(t, "1.5s", line.After)
	require.Equal(t, "1970-01-01T00:00:00.123Z", line.At)
	require.Regexp(t, `T\d\d:\d\d:\d\d\.\d{3}Z$`, line.Time)
}

// brokenOnce fails the first write.
type brokenOnce struct {
	broken bool
	bytes.Buffer
}

func (b *brokenOnce) Write(p []byte) (int, error) {
	if !b.broken {
		b.broken = true
		return 0, io.ErrClosedPipe
	}
	return b.Buffer.Write(p)
}

func TestLogger_ReportsDroppedLinesInItsFormat(t *testing.T) {
	out := new(brokenOnce)
	buffer := logs.NewBuffer(out)
	newLogger(buffer, "json").Info("lost")
	require.True(t, buffer.Close(time.Minute))
	var line struct {
		Level, Msg string
		Count      int
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	require.Equal(t, "WARN", line.Level)
	require.Equal(t, 1, line.Count)
	require.EqualValues(t, 1, droppedCounter(buffer)())
	require.Nil(t, droppedCounter(out), "a plain writer drops nothing")
}
