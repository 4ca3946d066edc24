package logs

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

func TestLog_WritesALineASecondAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Log
		l := Limited{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		for range 30 {
			l.Warn("a thing")
			time.Sleep(LimitedInterval / 10)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		require.Len(t, lines, 3)
		require.NotContains(t, lines[0], "suppressed")
		require.Contains(t, lines[1], "suppressed=9")
	})
}

func TestLog_WritesABurstAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Limited{Burst: 3}
		for second := range 3 {
			for i := range 5 {
				suppressed, ok := l.Allow()
				require.Equal(t, i < 3, ok)
				require.Equal(t, second > 0 && i == 0, suppressed == 2)
			}
			time.Sleep(LimitedInterval)
		}
	})
}
