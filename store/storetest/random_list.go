package storetest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// listRandomly lists jobs in all states on all shards by random filters in random pages, and compares each list with
// what the filter says about each job.
func listRandomly(s *suite) {
	all := listedJobs(s)
	setRapid()
	rapid.Check(s.T, func(t *rapid.T) {
		for range s.number(2, testkit.Of(5, 8)) {
			f := drawFilter(t, all)
			s.compareList(t, f, all, func(*job.Job) bool { return true }, func(f store.Filter) (store.Page, error) {
				return s.router.List(s.Context(), f)
			})
			s.compareList(t, f, all, func(j *job.Job) bool { return s.router.ShardOf(j.Queue) == s.shardNumber }, func(
				f store.Filter,
			) (store.Page, error) {
				return s.shard().List(s.Context(), f)
			})
		}
	})
}

// compareList compares a list with those jobs of all that are on its shards and match its filter. readPages checks the
// order.
func (s *suite) compareList(
	t *rapid.T, f store.Filter, all []job.Job, isOn func(*job.Job) bool, list func(store.Filter) (store.Page, error),
) {
	got, err := readPages(f, list)
	if err != nil {
		t.Fatalf("list %+v: %v", f, err)
	}
	var wanted []string
	for i := range all {
		if isOn(&all[i]) && f.Matches(&all[i]) {
			wanted = append(wanted, all[i].ID)
		}
	}
	ids := idsOfJobs(got)
	slices.Sort(ids)
	if !slices.Equal(ids, wanted) {
		t.Fatalf("list %+v: %v, want %v", f, ids, wanted)
	}
}

// listedJobs fills a store with jobs in all states, some of them of one millisecond, and reads them in the order of
// their ids.
func listedJobs(s *suite) []job.Job {
	topics, lanes := []string{"orders", "mails", job.CallbackTopic}, []string{"a", "b.example:80", "c", "d"}
	var entries []store.NewJob
	for i := range s.number(60, 120) {
		e := s.entry(fmt.Sprintf("%c-%03d", "abc"[i%3], i), in(job.Queue{
			Namespace: s.queue.Namespace, Topic: topics[i%7%3], Lane: lanes[i%11%4],
		}))
		e.Labels = map[string]string{"customer": fmt.Sprint(i % 5), "tier": fmt.Sprint(i % 2)}
		if e.Topic == job.CallbackTopic {
			e.Kind = []string{job.KindCallback, job.KindBacklog}[i%2]
		}
		e.Delay = []time.Duration{0, 0, 0, long, 2 * long}[i%13%5]
		entries = append(entries, e)
	}
	for part := range slices.Chunk(entries, 30) {
		for _, r := range s.router.Insert(s.Context(), part) {
			require.NoError(s, r.Err)
		}
		s.advance(2 * time.Millisecond)
	}
	verdicts := []policy.Verdict{
		delivered, dead,
		{Kind: policy.Dead, Reason: policy.ReasonExhausted},
		retry(long),
		{Kind: policy.Dead, Reason: policy.ReasonExpired},
	}
	settled := 0
	for _, topic := range topics {
		for i, lane := range lanes {
			q := job.Queue{Namespace: s.queue.Namespace, Topic: topic, Lane: lane}
			shard := s.Store.Shards()[s.router.ShardOf(q)]
			claimed, err := shard.Claim(s.Context(), store.NewToken(), claimOf(q))
			require.NoError(s, err)
			var items []store.Settlement
			for _, h := range claimed.Jobs {
				switch settled++; settled % 6 {
				case 5: // stays claimed
				case 4:
					items = append(items, settlement(h, released))
				default:
					items = append(items,
						answered(h, verdicts[settled%5], []int{0, http.StatusOK, http.StatusBadGateway}[settled%3]))
				}
			}
			if len(items) == 0 {
				continue
			}
			_, _, err = shard.Settle(s.Context(), store.NewToken(), items, nil)
			require.NoError(s, err)
			if i%2 == 1 { // other lanes have jobs that ended in the same millisecond
				s.advance(2 * time.Millisecond)
			}
		}
	}
	var all []job.Job
	for i, e := range entries {
		if i%9 == 0 {
			_, _ = s.router.Cancel(s.Context(), e.Ref(), store.Cancellation{}) // unless it has ended
		}
	}
	for _, e := range entries {
		found, err := s.router.Get(s.Context(), e.Ref())
		require.NoError(s, err)
		all = append(all, found)
	}
	slices.SortFunc(all, func(a, b job.Job) int { return cmp.Compare(a.ID, b.ID) })
	for _, state := range states {
		require.True(s,
			slices.ContainsFunc(all, func(j job.Job) bool { return j.State == state }), "no job is %s", state)
	}
	return all
}

// drawFilter draws a filter of jobs of the default namespace.
func drawFilter(t *rapid.T, all []job.Job) store.Filter {
	draw := func(label string, values ...string) string {
		if rapid.IntRange(0, 2).Draw(t, label+" set") > 0 {
			return ""
		}
		return rapid.SampledFrom(values).Draw(t, label)
	}
	moment := func(label string, of func(*job.Job) time.Time) (at time.Time) {
		if rapid.IntRange(0, 5).Draw(t, label+" set") > 0 {
			return at
		}
		if at = of(&all[rapid.IntRange(0, len(all)-1).Draw(t, label)]); !at.IsZero() {
			at = at.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, label+" apart")) * time.Millisecond)
		}
		return at
	}
	times := func(label string, of func(*job.Job) time.Time) store.TimeRange {
		return store.TimeRange{After: moment(label+" after", of), Before: moment(label+" before", of)}
	}
	f := store.Filter{
		Namespace: job.DefaultNamespace,
		Topic:     draw("topic", "orders", "mails", job.CallbackTopic, "nothing"),
		Lane:      draw("lane", "a", "b.example:80", "c", "nothing"),
		Kind:      draw("kind", job.KindRegistered, job.KindRegistered, job.KindCallback, job.KindBacklog),
		Reason: policy.Reason(draw("reason", string(policy.ReasonGaveUp), string(policy.ReasonExhausted),
			string(job.ReasonCancelled))),
		IDPrefix:  draw("prefix", "a", "b-0", "c-01"),
		Created:   times("created", func(j *job.Job) time.Time { return j.CreatedAt }),
		Due:       times("due", func(j *job.Job) time.Time { return j.DueAt }),
		Ended:     times("ended", func(j *job.Job) time.Time { return j.FinishedAt }),
		Oldest:    rapid.Bool().Draw(t, "oldest"),
		Limit:     rapid.SampledFrom([]int{1, 2, 7, 50, store.MaxListLimit}).Draw(t, "limit"),
		ScanLimit: rapid.SampledFrom([]int{0, 0, 1, 4, 30}).Draw(t, "scan limit"),
	}
	if draw("status", "set") != "" {
		f.Status = rapid.SampledFrom([]int{http.StatusOK, http.StatusBadGateway, http.StatusGone}).Draw(t, "status")
	}
	if draw("labels", "set") != "" {
		f.Labels = []store.Label{{Key: "customer", Value: fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "customer"))}}
		if tier := draw("tier", "0", "1"); tier != "" {
			f.Labels = append(f.Labels, store.Label{Key: "tier", Value: tier})
		}
	}
	for _, state := range states {
		if rapid.IntRange(0, 2).Draw(t, string(state)) == 0 {
			f.States = append(f.States, state)
		}
	}
	return f
}
