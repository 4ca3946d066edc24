package output

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWork_BarShowsTheProgress(t *testing.T) {
	now := time.Now()
	w := WorkProgress{
		Action: "revive", Total: new(int64(31200)), Done: 12000, Failed: 10, ETA: new(now.Add(240 * time.Second)),
	}
	require.Equal(t, "revive [###########-------------------] 12,010 of 31,200, 10 failed, ends in 4m", w.Bar(now))
	require.Equal(t, "revive 12,010, 10 failed", (&WorkProgress{Action: "revive", Done: 12000, Failed: 10}).Bar(now))
	require.Contains(t, (&WorkProgress{Total: new(int64(1)), Done: 9}).Bar(now),
		"[##############################] 9 of 1",
		"never longer than the bar")
}
