package doctor

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRun_ReportsWhatWasNotLookedAtAsUnknown(t *testing.T) {
	found := Run(t.Context(),
		Check{Subject: "a", Names: []Name{
			RedisReach, RedisClock,
			RedisRights,
		}, Run: func(context.Context) ([]Finding, error) {
			return append(RedisRights.of(good("all")), RedisReach.of(good("fast"))...), errors.New("it is gone")
		}},
		Check{
			Subject: "b", Names: []Name{SQLiteLog},
			Run: func(context.Context) ([]Finding, error) { return nil, nil },
		},
	)
	require.Equal(t, []Finding{
		{Check: RedisReach, Subject: "a", Level: OK, Seen: "fast", Docs: "docs/doctor.md#redis-reach"},
		{
			Check: RedisClock, Subject: "a", Level: Unknown, Seen: "could not be checked: it is gone",
			Remedy: "Mend that, and run ringback doctor again.", Docs: "docs/doctor.md#redis-clock",
		},
		{Check: RedisRights, Subject: "a", Level: OK, Seen: "all", Docs: "docs/doctor.md#redis-rights"},
		{
			Check: SQLiteLog, Subject: "b", Level: Unknown, Seen: "could not be checked: nothing was found",
			Remedy: "Mend that, and run ringback doctor again.", Docs: "docs/doctor.md#sqlite-log",
		},
	}, found)
}

func TestRun_DoesNotWaitForChecksThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		began := time.Now()
		hang := func(context.Context) ([]Finding, error) { <-release; return nil, nil } // a system call
		late := func(ctx context.Context) ([]Finding, error) { <-ctx.Done(); return nil, ctx.Err() }
		found := Run(t.Context(),
			Check{Subject: "hangs", Names: []Name{SQLiteFiles}, Run: hang},
			Check{Subject: "hangs too", Names: []Name{SQLiteSpace}, Run: hang},
			Check{Subject: "late", Names: []Name{RedisReach}, Run: late},
			Check{
				Subject: "fast", Names: []Name{ProcessCPU},
				Run: func(context.Context) ([]Finding, error) { return ProcessCPU.of(good("1")), nil },
			},
		)
		require.Equal(t, Limit+grace, time.Since(began))
		for _, f := range found[:3] {
			require.Equal(t, Unknown, f.Level)
			require.Equal(t, "could not be checked: no answer in time", f.Seen)
		}
		require.Equal(t, OK, found[3].Level, found[3])
	})
}

func TestRun_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	found := Run(ctx, Check{
		Names: []Name{RedisReach},
		Run:   func(ctx context.Context) ([]Finding, error) { <-ctx.Done(); return nil, ctx.Err() },
	})
	require.Equal(t, "could not be checked: context canceled", found[0].Seen)
}

func TestWorst_IsTheWorstLevel(t *testing.T) {
	require.Equal(t, OK, Worst(nil))
	require.Equal(t, Unknown, Worst([]Finding{{Level: OK}, {Level: Unknown}, {Level: OK}}))
	require.Equal(t, Fault, Worst([]Finding{{Level: Warn}, {Level: Fault}, {Level: Unknown}}))
}

func TestWriteText_GroupsBySubject(t *testing.T) {
	var text strings.Builder
	require.NoError(t, WriteText(&text, []Finding{
		{Check: ProcessCPU, Subject: "process", Level: OK, Seen: "pid 1"},
		{
			Check: RedisReach, Subject: "store main", Level: Fault, Seen: "gone\x1b[2J", Remedy: "Start it.",
			Docs: "docs/doctor.md#redis-reach",
		},
		{
			Check: RedisRights, Subject: "store main", Level: Unknown, Seen: "?", Remedy: "Look.",
			Docs: "docs/doctor.md#redis-rights",
		},
	}))
	require.Equal(t, `process
  ok       process-cpu   pid 1
store main
  FAULT    redis-reach   gone [2J
                         to do: Start it. (docs/doctor.md#redis-reach)
  unknown  redis-rights  ?
                         to do: Look. (docs/doctor.md#redis-rights)

3 checks: 1 faults, 0 warnings, 1 unknown
`, text.String())
}

func TestChecks_HaveSectionsInTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/doctor.md")
	require.NoError(t, err)
	var sections []Name
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "### "); ok {
			sections = append(sections, Name(strings.TrimSpace(name)))
		}
	}
	require.Equal(t, Checks, sections, "a section for each check, in the order of a report")
}

func TestCompareClocks_KnowsHowExactAnAnswerIs(t *testing.T) {
	for _, c := range []struct {
		diff, precision time.Duration
		want            Level
		seen            string
	}{
		{0, time.Millisecond, OK, "the clock of Redis is within 1ms of this machine"},
		{-900 * time.Millisecond, 50 * time.Millisecond, OK, "within 950ms"},
		{1500 * time.Millisecond, time.Millisecond, Warn, "the clock of Redis is 1.5s ahead of this machine"},
		{-1500 * time.Millisecond, time.Millisecond, Warn, "1.5s behind this machine"},
		{1500 * time.Millisecond, 800 * time.Millisecond, OK, "within 2.3s"},
		{1500 * time.Millisecond, 2 * time.Second, Unknown, "the answer took 4s"},
		{301 * time.Second, time.Millisecond, Fault, "5m1s ahead"},
		{-24 * time.Hour, time.Millisecond, Fault, "24h0m0s behind"},
	} {
		f := compareClocks("Redis", c.diff, c.precision)
		require.Equal(t, c.want, f.Level, c.seen)
		require.Contains(t, f.Seen, c.seen)
		require.Equal(t, f.Level == OK, f.Remedy == "")
	}
}

// requireFinding fails the test unless exactly one of the findings is of a check, with a level and words, and with a
// remedy if it is bad.
func requireFinding(t *testing.T, found []Finding, check Name, level Level, seen string) {
	t.Helper()
	var one []Finding
	for _, f := range found {
		if f.Check == check && f.Level == level && strings.Contains(f.Seen, seen) {
			one = append(one, f)
		}
	}
	require.Len(t, one, 1, "%s %s %q in %v", check, level, seen, found)
	require.Equal(t, level == OK, one[0].Remedy == "", one[0])
}
