package nowpage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

func TestCarrier_StandsStillWhenDueJobsDoNotBecomeReady(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	none, some := &client.HeldLanes{Exact: true}, &client.HeldLanes{Exact: true, Items: make([]client.HeldLane, 1)}
	for _, c := range []struct {
		name   string
		counts *client.Counts
		held   *client.HeldLanes
		want   string
	}{
		{"not known", nil, none, ""},
		{"nothing waits", &client.Counts{}, none, "ok"},
		{"due later", &client.Counts{Scheduled: 1, OldestDueAt: now.Add(time.Hour)}, none, "ok"},
		{"just due", &client.Counts{Scheduled: 1, OldestDueAt: now.Add(-2 * time.Second)}, none, "ok"},
		{"ready ones wait for workers", &client.Counts{Scheduled: 9, Ready: 5, OldestDueAt: now.Add(-time.Minute)}, none, "ok"},
		{"a lane holds them back", &client.Counts{Scheduled: 1, OldestDueAt: now.Add(-time.Minute)}, some, "ok"},
		{"due for a minute", &client.Counts{Scheduled: 1, OldestDueAt: now.Add(-time.Minute)}, none, "bad"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &state{v: &web.Visit{Now: now}, counts: c.counts, held: c.held}
			require.Equal(t, c.want, s.carrier().Class)
		})
	}
}
