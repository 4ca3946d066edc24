package nowpage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

func TestCarrier_KeepsUpWhileJobsWaitAndNoneIsOverdue(t *testing.T) {
	for _, c := range []struct {
		name   string
		counts *client.Counts
		want   bool
	}{
		{"not known", nil, false},
		{"nothing waits", &client.Counts{}, false},
		{"due later", &client.Counts{Scheduled: 1, OldestDueAt: noon.Add(time.Hour)}, true},
		{"just due", &client.Counts{Ready: 1, OldestDueAt: noon.Add(-2 * time.Second)}, true},
		{"due for a minute", &client.Counts{Scheduled: 9, Ready: 5, OldestDueAt: noon.Add(-time.Minute)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &state{v: &web.Visit{Now: noon}, counts: c.counts}
			require.Equal(t, c.want, s.carrierKeepsUp())
		})
	}
}
