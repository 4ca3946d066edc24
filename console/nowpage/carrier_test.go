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
		want   string
	}{
		{"not known", nil, ""},
		{"nothing waits", &client.Counts{}, "no job waits"},
		{"due later", &client.Counts{Scheduled: 1, OldestDueAt: noon.Add(time.Hour)}, "keeps up"},
		{"just due", &client.Counts{Ready: 1, OldestDueAt: noon.Add(-2 * time.Second)}, "keeps up"},
		{"due for a minute", &client.Counts{Scheduled: 9, Ready: 5, OldestDueAt: noon.Add(-time.Minute)}, "not known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &state{v: &web.Visit{Now: noon}, counts: c.counts}
			got := s.carrier()
			require.Equal(t, c.want == "keeps up", got.KeepsUp)
			if !got.KeepsUp {
				require.Contains(t, got.Text, c.want)
			}
			require.Equal(t, c.want == "", got.Text == "")
		})
	}
}
