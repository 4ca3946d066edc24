package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
)

func TestWork_BarShowsTheProgress(t *testing.T) {
	now := time.Now()
	w := &client.Work{
		Action: "revive", Total: new(int64(31200)), Done: 12000, Failed: 10, ETAAt: now.Add(240 * time.Second),
	}
	require.Equal(t, "revive [###########-------------------] 12,010 of 31,200, 10 failed, ends in 4m",
		progressBar(w, now))
	require.Equal(t, "revive 12,010, 10 failed",
		progressBar(&client.Work{Action: "revive", Done: 12000, Failed: 10}, now))
	require.Contains(t, progressBar(&client.Work{Total: new(int64(1)), Done: 9}, now),
		"[##############################] 9 of 1",
		"never longer than the bar")
}
