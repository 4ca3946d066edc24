package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func (s *suite) get(id string) job.Job {
	s.Helper()
	j, err := s.shard().Get(s.Context(), s.ref(id))
	require.NoError(s, err)
	return j
}

func (s *suite) isGone(id string) bool {
	s.Helper()
	_, err := s.shard().Get(s.Context(), s.ref(id))
	if err != nil {
		require.ErrorIs(s, err, store.ErrNotFound)
	}
	return err != nil
}

func (s *suite) cancel(id string) (job.Job, error) {
	return s.shard().Cancel(s.Context(), store.NewToken(), s.ref(id), store.Cancellation{})
}

// replace sends a replacement of the kind edited, unless it has another.
func (s *suite) replace(id string, r store.Replacement) (job.Job, error) {
	r.Kind = cmp.Or(r.Kind, job.EventEdited)
	return s.shard().Replace(s.Context(), store.NewToken(), s.ref(id), r)
}

// edit changes a job's specification.
func (s *suite) edit(id string, change func(*job.Spec)) (job.Job, error) {
	return Edit(s.Context(), s.shard(), store.NewToken(), s.ref(id), change)
}

// Edit reads a job, changes its specification, and replaces it under the version that it has read.
func Edit(
	ctx context.Context, shard store.Shard, token store.Token, ref job.Ref, change func(*job.Spec),
) (job.Job, error) {
	found, err := shard.Get(ctx, ref)
	if err != nil {
		return job.Job{}, err
	}
	change(&found.Spec)
	return shard.Replace(ctx, token, ref,
		store.Replacement{Kind: job.EventEdited, IfVersion: found.Version, Spec: &found.Spec})
}

func (s *suite) revive(id string, delay time.Duration) (job.Job, error) {
	return s.reviveWith(store.NewToken(), store.Revival{Ref: s.ref(id), Delay: delay})
}

// reviveWith sends one revival under a token.
func (s *suite) reviveWith(token store.Token, item store.Revival) (job.Job, error) {
	return reviveOne(s.Context(), s.shard(), token, item)
}

// reviveOne sends one revival.
func reviveOne(ctx context.Context, shard store.Shard, token store.Token, item store.Revival) (job.Job, error) {
	results, err := shard.Revive(ctx, token, []store.Revival{item})
	if err != nil {
		return job.Job{}, err
	}
	if len(results) != 1 {
		return job.Job{}, fmt.Errorf("%d results of one revival", len(results))
	}
	return results[0].Job, results[0].Err
}

// inState requires a StateError with a state.
func (s *suite) inState(err error, state job.State) {
	s.Helper()
	stateErr, ok := errors.AsType[*store.StateError](err)
	require.True(s, ok, "want a StateError, got %v", err)
	require.Equal(s, state, stateErr.State)
}

func (s *suite) carry(r store.CarryOptions) store.CarryResult {
	s.Helper()
	c, err := s.shard().Carry(s.Context(), store.NewToken(), r)
	require.NoError(s, err)
	return c
}

// wait returns the wake-ups that come within a duration.
func (s *suite) wait(wait time.Duration) []job.Queue {
	s.Helper()
	wakeup, err := s.shard().Wait(s.Context(), store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: wait})
	require.NoError(s, err)
	return wakeup
}

// waitNotified carries until a queue is notified.
func (s *suite) waitNotified(q job.Queue) {
	s.Helper()
	s.eventually("a wake-up of "+q.String(), func() bool {
		s.carry(store.CarryOptions{})
		return slices.Contains(s.wait(time.Millisecond), q)
	})
}

// drainWakeups receives all pending wake-ups.
func (s *suite) drainWakeups() {
	s.Helper()
	s.eventually("no more wake-ups", func() bool {
		return !s.waitAgenda(time.Millisecond) && len(s.wait(time.Millisecond)) == 0
	})
}

func (s *suite) put(p policy.Topic) store.Topic {
	s.Helper()
	t, err := store.PutTopic(s.Context(), s.Store,
		store.Topic{Namespace: s.queue.Namespace, Name: s.queue.Topic, Policy: p})
	require.NoError(s, err)
	return t
}

// sweep sweeps until nothing is beyond its retention.
func (s *suite) sweep() {
	s.Helper()
	for more := true; more; {
		swept, err := s.shard().Sweep(s.Context(), store.NewToken(), 100)
		require.NoError(s, err)
		require.LessOrEqual(s, swept.Jobs, 100)
		require.LessOrEqual(s, swept.IDs, 100)
		more = swept.More
	}
}

// stats returns the stats of the test's topic.
func (s *suite) stats() store.TopicStats {
	s.Helper()
	rows, err := s.shard().TopicStats(s.Context(),
		store.StatsFilter{Namespace: s.queue.Namespace, Topics: []string{s.queue.Topic}})
	require.NoError(s, err)
	require.Len(s, rows, 1)
	require.Equal(s, s.queue.Topic, rows[0].Topic)
	return rows[0]
}

// list reads all pages.
func (s *suite) list(f store.Filter) []job.Job {
	s.Helper()
	jobs, err := listAll(s.Context(), s.shard(), f)
	require.NoError(s, err)
	return jobs
}

// listAll reads all pages of a shard's list.
func listAll(ctx context.Context, shard store.Shard, f store.Filter) ([]job.Job, error) {
	return readPages(f, func(f store.Filter) (store.Page, error) {
		page, err := shard.List(ctx, f)
		if err == nil && (len(page.Ties) != len(page.Jobs) || slices.Contains(page.Ties, "")) {
			err = fmt.Errorf("a page of %d jobs has the ties %q", len(page.Jobs), page.Ties)
		}
		return page, err
	})
}

// readPages reads all pages of a list, and checks what the contract says about each.
func readPages(f store.Filter, list func(store.Filter) (store.Page, error)) ([]job.Job, error) {
	f.Limit = cmp.Or(f.Limit, store.MaxListLimit)
	var all []job.Job
	for {
		page, err := list(f)
		if err == nil {
			err = checkListed(page, &f)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, page.Jobs...)
		if !page.More {
			return all, nil
		}
		f.After = page.Reached
	}
}

// maxOvershoot is how many jobs more than the ScanLimit a page may look at.
const maxOvershoot = 1000

// checkListed checks what the contract says about a page of any list of a shard, or of a store.
func checkListed(page store.Page, f *store.Filter) error {
	scanLimit := cmp.Or(f.ScanLimit, store.MaxScanLimit)
	switch {
	case len(page.Jobs) > f.Limit:
		return fmt.Errorf("a page of %d jobs, limit %d", len(page.Jobs), f.Limit)
	case page.Scanned < len(page.Jobs) || page.Scanned > scanLimit+maxOvershoot:
		return fmt.Errorf("a page of %d jobs looked at %d, limit %d", len(page.Jobs), page.Scanned, scanLimit)
	case page.More && (page.Reached == f.After || page.Reached.Compare(f.After, f.Oldest) < 0):
		return fmt.Errorf("a page after %+v has reached %+v", f.After, page.Reached)
	}
	before := f.After
	for i := range page.Jobs {
		at := store.PositionOf(&page.Jobs[i], "")
		at.Shard = before.Shard // that of the job is not known
		if at.Compare(before, f.Oldest) < 0 {
			return fmt.Errorf("%s is at %+v, behind %+v", page.Jobs[i].ID, at, before)
		}
		before = at
	}
	if before.Shard = page.Reached.Shard; page.More && page.Reached.Compare(before, f.Oldest) < 0 {
		return fmt.Errorf("a page with a job at %+v has reached %+v", before, page.Reached)
	}
	return nil
}

// idsOfJobs returns the ids of listed jobs.
func idsOfJobs(jobs []job.Job) []string {
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	return ids
}

// releaseUnrecorded returns a claimed job without an entry in its history.
func (s *suite) releaseUnrecorded(h store.ClaimedJob) {
	s.Helper()
	item := settlement(h, released)
	item.Attempt = job.Attempt{}
	require.NoError(s, s.settle(item)[0])
}

// numbers returns the numbers from first to last.
func numbers(first, last int) (all []int) {
	for n := first; n <= last; n++ {
		all = append(all, n)
	}
	return all
}

// eventKinds returns the kinds of a job's events.
func eventKinds(j job.Job) []job.EventKind {
	var all []job.EventKind
	for _, e := range j.Events {
		all = append(all, e.Kind)
	}
	return all
}

// kinds returns the kinds of the attempts in a job's history.
func kinds(j job.Job) []job.AttemptKind {
	var all []job.AttemptKind
	for _, a := range j.History {
		all = append(all, a.Kind)
	}
	return all
}
