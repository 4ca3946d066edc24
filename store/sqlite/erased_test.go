package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/storetest"
)

// Headers may carry secrets: what is removed or replaced is gone from the file, once its log is.
func TestRemove_LeavesNothingOfHeadersInTheFile(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	secret := func(of string, i int) map[string][]string {
		return map[string][]string{"Authorization": {fmt.Sprintf("removed-%s-%04d-%s", of, i,
			strings.Repeat("x", 40*(i%50)))}}
	}
	const jobs = 400
	entries := newJobs("job", jobs, 0)
	for i := range entries {
		entries[i].Header = secret("job", i)
		if i%4 == 0 {
			entries[i].Body = bytes.Repeat([]byte("b"), 2*table.InlineBody)
		}
	}
	insert(t, s, entries...)
	for i := range entries {
		if i%3 == 0 {
			_, err := storetest.Edit(t.Context(), s, store.NewToken(), entries[i].Ref(),
				func(spec *job.Spec) { spec.Header = secret("edited", i) })
			require.NoError(t, err)
		}
	}
	for i := range 20 {
		putLane(t, s, policy.Lane{Headers: secret("lane", i)})
		_, err := store.PutTopic(t.Context(), s,
			store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Headers: secret("topic", i)}})
		require.NoError(t, err)
	}
	var children []store.NewJob
	for ended := 0; ended < jobs; {
		claimed := claimJobs(t, s, 64)
		require.NotEmpty(t, claimed)
		items := make([]store.Settlement, len(claimed))
		for i, h := range claimed {
			child := newJob(fmt.Sprintf("child-%04d", ended+i), time.Hour)
			child.Header = secret("child", ended+i)
			children = append(children, child)
			items[i] = settlementOf(h, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExhausted})
			items[i].Outbox = []store.NewJob{child}
		}
		settle(t, s, items...)
		ended += len(claimed)
	}
	var round store.CarryOptions
	for relayed := 0; relayed <= len(children); {
		carried, err := s.Carry(t.Context(), store.NewToken(), round)
		require.NoError(t, err)
		if len(carried.Outbox) == 0 {
			require.Equal(t, len(children), relayed)
			break
		}
		round.Relayed = nil
		for _, b := range carried.Outbox {
			round.Relayed = append(round.Relayed, b.Ref())
		}
		relayed += len(carried.Outbox)
	}
	for i := range entries {
		errs, err := s.Purge(t.Context(), store.NewToken(), []store.Removal{{Ref: entries[i].Ref()}})
		require.NoError(t, err)
		require.NoError(t, errs[0])
	}
	putLane(t, s, policy.Lane{})
	_, err := store.PutTopic(t.Context(), s, store.Topic{Namespace: lane.Namespace, Name: lane.Topic})
	require.NoError(t, err)
	require.NoError(t, s.Close())

	raw, err := os.ReadFile(o.Path)
	require.NoError(t, err)
	found := map[string]int{}
	for _, of := range []string{"job", "edited", "lane", "topic", "child"} {
		if n := bytes.Count(raw, []byte("removed-"+of)); n > 0 {
			found[of] = n
		}
	}
	require.Empty(t, found)
	require.NoFileExists(t, o.Path+"-wal")
}
