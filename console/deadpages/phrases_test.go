package deadpages

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
)

func TestLeadOf_SaysHowFarWorkIs(t *testing.T) {
	began := time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC)
	now := began.Add(13 * time.Second)
	for want, w := range map[string]client.Work{
		"Reviving jobs: 0 done.": {Action: "revive", State: "running"},
		"Reviving at least 112 jobs at 20/s: 48 done. Begun by mia.": {
			Action: "revive", State: "running", Matched: 112, Done: 48, Rate: "20/s", CreatedBy: "mia",
		},
		"Reviving 280 jobs at 10/s, 5/s in each lane: 130 done, 2 failed, 1 skipped; about 15s left. Begun by mia.": {
			Action: "revive", State: "running", Total: new(int64(280)), Done: 130, Failed: 2, Skipped: 1, Rate: "10/s", LaneRate: "5/s",
			ETAAt: now.Add(14_100 * time.Millisecond), CreatedBy: "mia",
		},
		"Deleting 1 job: 0 done.":                             {Action: "purge", State: "running", Total: new(int64(1)), ETAAt: now},
		"Cancelling 4 jobs: 4 done.":                          {Action: "cancel", State: "running", Total: new(int64(2)), Matched: 3, Done: 4},
		"No job matched.":                                     {Action: "run", State: "done", Total: new(int64(0)), EndedAt: began},
		"1 of 1 job was made due. It took 5s.":                {Action: "run", State: "done", Total: new(int64(1)), Done: 1, EndedAt: began.Add(5 * time.Second)},
		"7 of 9 jobs were edited, 2 skipped.":                 {Action: "edit", State: "done", Total: new(int64(9)), Done: 7, Skipped: 2, EndedAt: began},
		"Stopped after 7s. 0 jobs were deleted.":              {Action: "purge", State: "stopped", EndedAt: began.Add(7 * time.Second)},
		"This work failed: it cannot be read from the store.": {State: "failed"},
		"resting: 1 done.":                                    {Action: "melt", State: "resting", Done: 1},
	} {
		w.CreatedAt = began
		text, _ := leadOf(&w, now)
		require.Equal(t, want, text)
	}
}

func TestWhatOf_SaysWhichJobs(t *testing.T) {
	for want, w := range map[string]client.Work{
		"Revive all dead jobs":                               {Action: "revive", Where: json.RawMessage(`{"all": true}`)},
		"Delete all dead jobs of every kind":                 {Action: "purge", Where: json.RawMessage(`{"kind": "all"}`)},
		"Run 3 jobs by their ids":                            {Action: "run", Where: json.RawMessage(`{"ids_count": 3}`)},
		"Cancel ready jobs of topic pay":                     {Action: "cancel", Where: json.RawMessage(`{"topic": "pay", "state": "ready"}`)},
		"Edit scheduled, ready or running jobs of topic pay": {Action: "edit", Where: json.RawMessage(`{"topic": "pay"}`)},
		"Unknown work":                                       {State: "failed"},
		"melt jobs of topic pay":                             {Action: "melt", Where: json.RawMessage(`{"topic": "pay"}`)},
	} {
		text, _, err := whatOf(&w)
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
	_, _, err := whatOf(&client.Work{Where: json.RawMessage(`[]`)})
	require.Error(t, err)
}
