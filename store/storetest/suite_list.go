package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// ofKind makes a job one of Ringback's.
func ofKind(kind string) option { return func(e *store.NewJob) { e.Kind = kind } }

// requireListed requires that a filter of the test's namespace selects jobs, in any order, whatever the pages are.
func (s *suite) requireListed(f store.Filter, ids ...string) {
	s.Helper()
	f.Namespace = s.queue.Namespace
	for _, page := range []struct {
		oldest           bool
		limit, scanLimit int
	}{
		{true, 1, 0},
		{false, store.MaxListLimit, 1},
		{false, 1, 1},
		{true, store.MaxListLimit, 0},
	}[:s.number(2, 4)] {
		f.Oldest, f.Limit, f.ScanLimit = page.oldest, page.limit, page.scanLimit
		require.ElementsMatch(s, ids, idsOfJobs(s.list(f)), "%+v", f)
	}
}

var listCases = []testCase{
	{"filters by topic, by lane, or by both", func(s *suite) {
		other := job.Queue{Namespace: s.queue.Namespace, Topic: "mails"}
		for n := 1; other.Lane == "" || s.router.ShardOf(other) != s.shardNumber; n++ {
			other.Lane = s.laneQueue(n).Lane // a lane of both topics
		}
		same := job.Queue{Namespace: s.queue.Namespace, Topic: s.queue.Topic, Lane: other.Lane}
		s.insertNew(
			s.entry("a"), s.entry("b", delayed(long)), s.entry("c", in(same)),
			s.entry("d", in(s.queueOf(s.queue.Namespace, "mails-2", 0)), delayed(long)), s.entry("e", in(other)),
			s.entry("elsewhere", in(s.queueOf("other", "orders", 0))),
		)
		s.settleOne(s.claimAll("a")[0], dead)
		s.requireListed(store.Filter{}, "a", "b", "c", "d", "e")
		s.requireListed(store.Filter{Topic: "orders"}, "a", "b", "c")
		s.requireListed(store.Filter{Topic: "mails"}, "e")
		s.requireListed(store.Filter{Topic: "mail"})
		s.requireListed(store.Filter{Topic: "orders", Lane: s.queue.Lane}, "a", "b")
		s.requireListed(store.Filter{Topic: "orders", Lane: "lane"})
		s.requireListed(store.Filter{Lane: other.Lane}, "c", "e")
		s.requireListed(store.Filter{Lane: s.queue.Lane, Topic: "mails"})
		s.requireListed(store.Filter{Lane: "lane"})
	}},
	{"filters by states", func(s *suite) {
		s.oneEach()
		all := make([]string, len(states))
		for i, state := range states {
			all[i] = string(state)
		}
		s.requireListed(store.Filter{}, all...)
		for mask := range 1 << len(states) {
			var some []string
			var f store.Filter
			for i, state := range states {
				if mask&(1<<i) != 0 {
					some, f.States = append(some, string(state)), append(f.States, state)
				}
			}
			if mask > 0 {
				require.ElementsMatch(s, some,
					idsOfJobs(s.list(store.Filter{Namespace: s.queue.Namespace, States: f.States})))
			}
		}
		s.requireListed(store.Filter{States: []job.State{"unknown"}})
	}},
	{"filters by kind and reserved topics", func(s *suite) {
		reserved := func(topic string) job.Queue { return s.queueOf(s.queue.Namespace, topic, 0) }
		// The names before and behind those of reserved topics.
		s.insertNew(
			s.entry("Z", in(reserved("Z")), delayed(long)), s.entry("a", in(reserved("a")), delayed(long)),
			s.entry("b"), s.entry("callback", in(reserved("_callbacks")), ofKind(job.KindCallback), delayed(long)),
			s.entry("backlog", in(reserved("_callbacks")), ofKind(job.KindBacklog), delayed(long)),
			s.entry("other", in(reserved("_other")), ofKind(job.KindCallback), delayed(long)),
		)
		s.settleOne(s.claimAll("b")[0], dead)
		s.requireListed(store.Filter{Kind: job.KindRegistered}, "Z", "a", "b")
		s.requireListed(store.Filter{Kind: job.KindRegistered, Topic: "a"}, "a")
		s.requireListed(store.Filter{Kind: job.KindRegistered, Topic: "_callbacks"})
		s.requireListed(store.Filter{Kind: job.KindCallback}, "callback", "other")
		s.requireListed(store.Filter{Kind: job.KindCallback, Topic: "_callbacks"}, "callback")
		s.requireListed(store.Filter{Kind: job.KindCallback, Topic: "a"})
		s.requireListed(store.Filter{Kind: job.KindBacklog, Lane: reserved("_callbacks").Lane}, "backlog")
		s.requireListed(store.Filter{Kind: "unknown"})
		s.requireListed(store.Filter{}, "Z", "a", "b", "callback", "backlog", "other")
	}},
	{"filters by labels, all of which a job must have", func(s *suite) {
		both := s.entry("both", delayed(long))
		both.Labels = map[string]string{"customer": "1", "tier": "gold"}
		s.insertNew(both,
			s.entry("one", delayed(long), labelled("customer", "1")),
			s.entry("two", delayed(long), labelled("customer", "2")),
			s.entry("empty", delayed(long), labelled("customer", "")), s.entry("none", delayed(long)),
		)
		label := func(all ...string) (f store.Filter) {
			for _, l := range all {
				key, value, _ := strings.Cut(l, ":")
				f.Labels = append(f.Labels, store.Label{Key: key, Value: value})
			}
			return f
		}
		s.requireListed(label("customer:1"), "both", "one")
		s.requireListed(label("customer:1", "tier:gold"), "both")
		s.requireListed(label("tier:gold", "customer:1"), "both")
		s.requireListed(label("customer:1", "customer:2"))
		s.requireListed(label("customer:"), "empty")
		s.requireListed(label("tier:1"))
	}},
	{"filters by the beginning of ids", func(s *suite) {
		s.insertNew(s.entry("order-1"), s.entry("order-12", delayed(long)), s.entry("Order-1", delayed(long)),
			s.entry("mail-1", delayed(long)))
		s.settleOne(s.claimAll("order-1")[0], delivered)
		s.requireListed(store.Filter{IDPrefix: "order-1"}, "order-1", "order-12")
		s.requireListed(store.Filter{IDPrefix: "order-12"}, "order-12")
		s.requireListed(store.Filter{IDPrefix: "order-123"})
		s.requireListed(store.Filter{IDPrefix: "%"})
	}},
	{"filters by times, After inclusive and Before exclusive", func(s *suite) {
		for i := range 4 {
			id := fmt.Sprint(i)
			s.insertNew(s.entry(id, delayed(long+time.Duration(i)*time.Minute)))
			s.advance(2 * time.Millisecond)
			s.endJob("dead-"+id, dead)
			s.advance(2 * time.Millisecond)
		}
		from, to := s.get("1"), s.get("3")
		s.requireListed(store.Filter{Due: store.TimeRange{After: from.DueAt, Before: to.DueAt}}, "1", "2")
		s.requireListed(store.Filter{Due: store.TimeRange{After: from.DueAt}}, "1", "2", "3")
		s.requireListed(store.Filter{Due: store.TimeRange{After: from.DueAt.Add(time.Microsecond)}}, "2", "3")
		s.requireListed(store.Filter{Due: store.TimeRange{Before: from.DueAt}}, "0", "dead-0",
			"dead-1", "dead-2", "dead-3")
		s.requireListed(store.Filter{
			Due:  store.TimeRange{Before: from.DueAt.Add(time.Microsecond)},
			Lane: s.queue.Lane,
		},
			"0", "1", "dead-0", "dead-1", "dead-2", "dead-3")
		s.requireListed(store.Filter{Due: store.TimeRange{After: to.DueAt, Before: from.DueAt}})
		s.requireListed(store.Filter{Created: store.TimeRange{After: from.CreatedAt, Before: to.CreatedAt}},
			"1", "2", "dead-1", "dead-2")
		from, to = s.get("dead-1"), s.get("dead-3")
		s.requireListed(store.Filter{Ended: store.TimeRange{After: from.FinishedAt, Before: to.FinishedAt}}, "dead-1",
			"dead-2")
		s.requireListed(store.Filter{Ended: store.TimeRange{Before: from.FinishedAt}}, "dead-0")
		s.requireListed(store.Filter{Ended: store.TimeRange{After: to.FinishedAt, Before: from.FinishedAt}})
		s.requireListed(store.Filter{
			Ended:  store.TimeRange{After: from.FinishedAt},
			States: []job.State{job.Ready, job.Cancelled},
		})
	}},
	{"filters by the reason of dead and cancelled jobs", func(s *suite) {
		s.oneEach()
		s.requireListed(store.Filter{Reason: policy.ReasonGaveUp}, "dead")
		s.requireListed(store.Filter{Reason: job.ReasonCancelled}, "cancelled")
		s.requireListed(store.Filter{Reason: policy.ReasonExpired})
		s.requireListed(store.Filter{Reason: policy.ReasonGaveUp, States: []job.State{job.Cancelled, job.Ready}})
	}},
	{"orders unfinished jobs by topic, lane and due time, and then ended ones of all topics by their end", func(
		s *suite,
	) {
		var wanted []string
		topics := []string{"_callbacks", "mails", "mails-2", "orders"}
		for _, topic := range topics {
			for lane := range 3 {
				q := s.queueOf(s.queue.Namespace, topic, lane)
				for i := range 3 {
					id := fmt.Sprintf("%s-%d-%d", strings.Trim(topic, "_"), lane, i)
					s.insertNew(s.entry(id, in(q), delayed(long+time.Duration(i)*time.Minute)))
					wanted = append(wanted, id)
				}
			}
		}
		var ended []string
		for i, topic := range []string{"orders", "mails", "orders", "_callbacks", "mails-2", "mails", "orders"} {
			s.queue = s.queueOf(s.queue.Namespace, topic, i%3)
			id := fmt.Sprint(9 - i)
			s.insertNew(s.entry(id))
			h := s.claimAll(id)[0]
			s.advance(2 * time.Millisecond)
			switch i % 3 {
			case 0:
				s.settleOne(h, dead)
			case 1:
				s.settleOne(h, delivered)
			default:
				s.settleOne(h, released)
				_, err := s.cancel(id)
				require.NoError(s, err)
			}
			s.advance(2 * time.Millisecond)
			ended = append(ended, id)
		}
		f := store.Filter{Namespace: s.queue.Namespace}
		for _, f.Limit = range []int{1, 7, 500} {
			f.Oldest = true
			require.Equal(s, append(slices.Clone(wanted), ended...), idsOfJobs(s.list(f)))
			f.Oldest = false
			newest := slices.Clone(wanted)
			for lane := range slices.Chunk(newest, 3) {
				slices.Reverse(lane)
			}
			last := slices.Clone(ended)
			slices.Reverse(last)
			require.Equal(s, append(newest, last...), idsOfJobs(s.list(f)))
		}
	}},
	{"lists running, ready and scheduled jobs of a lane together", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"))
		s.claimAll("a", "b")
		s.advance(2 * time.Millisecond)
		s.insertNew(s.entry("c"))
		s.advance(2 * time.Millisecond)
		s.insertNew(s.entry("d", delayed(long)))
		f := store.Filter{Namespace: s.queue.Namespace, Oldest: true, Limit: 1}
		got := s.list(f)
		require.ElementsMatch(s, []string{"a", "b"}, idsOfJobs(got[:2]))
		require.Equal(s, []string{"c", "d"}, idsOfJobs(got[2:]))
		f.States = []job.State{job.Running, job.Scheduled}
		got = s.list(f)
		require.ElementsMatch(s, []string{"a", "b"}, idsOfJobs(got[:2]))
		require.Equal(s, []string{"d"}, idsOfJobs(got[2:]))
	}},
	{"pages contain each job once, also those of one millisecond", func(s *suite) {
		var wanted []string
		var entries []store.NewJob
		n := s.number(18, 60)
		for i := range n {
			e := s.entry(fmt.Sprintf("job-%02d", i), in(s.laneQueue(i%3)))
			e.RunAt = s.now().Truncate(time.Second).Add(long + time.Duration(3*i/n)*time.Minute)
			wanted, entries = append(wanted, e.ID), append(entries, e)
		}
		s.insertNew(entries...)
		f := s.filter(job.Scheduled)
		for _, f.Oldest = range []bool{false, true} {
			for _, f.Limit = range []int{1, 4, 7, 500} {
				for _, f.ScanLimit = range []int{0, 3} {
					require.ElementsMatch(s, wanted, idsOfJobs(s.list(f)), "%+v", f)
				}
			}
		}
		for _, id := range wanted {
			_, err := s.cancel(id)
			require.NoError(s, err)
		}
		f = s.filter(job.Cancelled)
		for _, f.Oldest = range []bool{false, true} {
			for _, f.Limit = range []int{1, 7, 500} {
				require.ElementsMatch(s, wanted, idsOfJobs(s.list(f)), "%+v", f)
			}
		}
	}},
	{"pages are full up to the last", func(s *suite) {
		for i := range 10 {
			s.insertNew(s.entry(fmt.Sprint(i), in(s.laneQueue(i%3)), delayed(long+time.Duration(i)*time.Minute)))
		}
		for i := range 4 {
			s.endJob(fmt.Sprint("dead-", i), dead)
		}
		f := store.Filter{Namespace: s.queue.Namespace, Limit: 4}
		var sizes []int
		for more := true; more; {
			page, err := s.shard().List(s.Context(), f)
			require.NoError(s, err)
			sizes = append(sizes, len(page.Jobs))
			f.After, more = page.Reached, page.More
		}
		require.Equal(s, []int{4, 4, 4, 2}, sizes)
	}},
	{"goes on behind jobs and lanes that are gone", func(s *suite) {
		for i := range 6 {
			s.insertNew(s.entry(fmt.Sprint("wait-", i), in(s.laneQueue(i)), delayed(long)))
			s.endJob(fmt.Sprint("dead-", i), dead)
			s.advance(2 * time.Millisecond)
		}
		f := store.Filter{Namespace: s.queue.Namespace, Limit: 2, Oldest: true}
		page, err := s.shard().List(s.Context(), f)
		require.NoError(s, err)
		require.Equal(s, []string{"wait-0", "wait-1"}, idsOfJobs(page.Jobs))
		for _, id := range []string{"wait-0", "wait-1", "wait-2"} {
			_, err := s.cancel(id)
			require.NoError(s, err)
		}
		f.After, f.States = page.Reached, []job.State{job.Scheduled, job.Dead}
		require.Equal(s, []string{
			"wait-3", "wait-4", "wait-5", "dead-0", "dead-1", "dead-2", "dead-3", "dead-4",
			"dead-5",
		}, idsOfJobs(s.list(f)))
		f.States = []job.State{job.Dead}
		page, err = s.shard().List(s.Context(), f)
		require.NoError(s, err)
		require.Equal(s, []string{"dead-0", "dead-1"}, idsOfJobs(page.Jobs))
		errs, err := s.shard().Purge(s.Context(), store.NewToken(),
			[]store.Removal{{Ref: s.ref("dead-0")}, {Ref: s.ref("dead-1")}, {Ref: s.ref("dead-2")}})
		require.NoError(s, err)
		require.Equal(s, make([]error, 3), errs)
		f.After = page.Reached
		require.Equal(s, []string{"dead-3", "dead-4", "dead-5"}, idsOfJobs(s.list(f)))
	}},
	{"answers a position that no page has reached", func(s *suite) {
		s.oneEach()
		f := store.Filter{Namespace: s.queue.Namespace, Limit: 2}
		for _, at := range []store.Position{
			{Topic: "a"},
			{Topic: "zzz"},
			{Topic: "orders", Lane: "zzz", At: 1, Tie: "x/y"},
			{Topic: "orders", Lane: s.queue.Lane, At: 1 << 52},
			{Topic: "orders", Lane: s.queue.Lane, At: 1 << 52, Tie: strings.Repeat("9", 200)},
			{Topic: "\x00\xff", Lane: "\n", At: 1, Tie: "\x00\n"},
			{Ended: true, Topic: "orders", Lane: "x"},
			{Ended: true, At: 1, Tie: "-1"},
			{Ended: true, At: 1 << 52, Tie: "zzz", Shard: 200},
		} {
			for _, f.Oldest = range []bool{false, true} {
				f.After = at
				for more := true; more; {
					page, err := s.shard().List(s.Context(), f)
					if err != nil {
						require.ErrorIs(s, err, store.ErrCursor)
						break
					}
					require.NoError(s, checkListed(page, &f))
					f.After, more = page.Reached, page.More
				}
			}
		}
	}},
	{"random filters and pages select what they should, on a shard and on all", listRandomly},
}
