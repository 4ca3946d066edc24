package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/store"
)

const (
	// shownTicks is the number of ticks to come that are shown.
	shownTicks = 10
	// readAtOnce bounds concurrent reads of jobs.
	readAtOnce = 8
	// lastStatesTime bounds the wait for shards that may know the jobs of newest ticks: a list does without one that
	// hangs.
	lastStatesTime = time.Second
)

// Get returns a schedule. store.ErrNotFound.
func (s *Service) Get(ctx context.Context, namespace, name string) (store.Schedule, error) {
	d, doc, err := s.read(ctx, namespace, name)
	if errors.Is(err, store.ErrUnreadable) {
		return d.schedule(&doc), nil
	}
	if err != nil {
		return store.Schedule{}, err
	}
	return s.view(ctx, d, &doc, true)
}

// List returns the schedules of a namespace in order of name, at most limit after a name. Of the states of jobs they
// have those in which the jobs of the newest ticks ended, as far as they can be read.
func (s *Service) List(ctx context.Context, namespace, after string, limit int) ([]store.Schedule, error) {
	docs, err := s.list(ctx, namespace, after, limit)
	if err != nil {
		return nil, err
	}
	all, errs := make([]store.Schedule, len(docs)), make([]error, len(docs))
	internaljobs.InParallel(len(docs), readAtOnce, func(i int) {
		d, err := decode(&docs[i])
		if err != nil {
			all[i] = d.schedule(&docs[i])
			return
		}
		all[i], errs[i] = s.view(ctx, d, &docs[i], false)
	})
	s.readLastStates(ctx, all)
	return all, errors.Join(errs...)
}

// readLastStates sets the states in which the jobs of the schedules' newest ticks ended, as far as they can be read, in
// one call for all.
func (s *Service) readLastStates(ctx context.Context, all []store.Schedule) {
	var ticks []*store.ScheduleTick
	var refs []job.Ref
	for i := range all {
		if n := len(all[i].Last); n > 0 && all[i].Last[n-1].JobID != "" {
			t := &all[i].Last[n-1]
			ticks, refs = append(ticks, t), append(refs, job.Ref{Namespace: all[i].Namespace, ID: t.JobID})
		}
	}
	if len(refs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastStatesTime)
	defer cancel()
	statuses, err := s.opts.Jobs.StatusOnAny(ctx, refs)
	if err != nil {
		return
	}
	for i, status := range statuses {
		if status.Known() {
			ticks[i].JobState = status.Ended
		}
	}
}

// list lists the documents of a namespace's schedules.
func (s *Service) list(ctx context.Context, namespace, after string, limit int) ([]store.Document, error) {
	docs, _, err := s.opts.Settings.ListDocuments(ctx, keyOf(namespace, after), limit)
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	for i := range docs {
		if docs[i].Key.Namespace != namespace {
			return docs[:i], nil
		}
	}
	return docs, nil
}

// A Check may refuse a request about a stored schedule, which has no progress; nil: none does.
type Check func(*store.Schedule) error

// schedule returns the stored part of a schedule. Of an unreadable one, which is nil, little is known.
func (d *document) schedule(doc *store.Document) store.Schedule {
	known := store.Schedule{
		Namespace: doc.Key.Namespace, Name: doc.Key.Name, Revision: doc.Revision,
		Durability: doc.Durability,
	}
	if d == nil {
		known.Unreadable = true
		return known
	}
	known.ScheduleSettings, known.Paused, known.Pause = d.ScheduleSettings, d.Paused, d.Pause
	known.CreatedAt, known.CreatedBy, known.Updated, known.Backfill = d.CreatedAt, d.CreatedBy, d.Updated, d.Backfill
	return known
}

// view returns a schedule with its progress; whole: with the states of the jobs of its last ticks.
func (s *Service) view(ctx context.Context, d *document, doc *store.Document, whole bool) (store.Schedule, error) {
	shown := d.schedule(doc)
	var p progress
	found, err := s.opts.Jobs.GetIn(ctx, queueOf(shown.Namespace, shown.Name),
		job.Ref{Namespace: shown.Namespace, ID: d.JobID})
	if err == nil {
		var unreadable error
		p, unreadable = decodeProgress(found.Body)
		shown.Unreadable = unreadable != nil
	}
	if shown.Unreadable || err != nil && !errors.Is(err, store.ErrNotFound) {
		return shown, err
	}
	shown.Counts, shown.Last = p.Counts, p.Last
	if b := p.Backfill; b != nil && d.Backfill != nil && b.CreatedAt.Equal(d.Backfill.CreatedAt) {
		shown.Backfill = &b.Backfill
	}
	if whole {
		s.readStates(ctx, shown.Namespace, shown.Last)
	}
	ticks, err := schedule.Parse(d.Spec)
	if shown.Unreadable = err != nil; shown.Unreadable { // this program does not know its time zone
		return shown, nil
	}
	shown.Description = ticks.Describe()
	shown.Delay = delayOf(ticks, shown.Namespace, shown.Name)
	after := later(p.Passed, time.Now().Add(-shown.Delay))
	if p.Timing == "" { // the first step begins to count
		after = time.Now()
	}
	shown.Next = ticks.Ticks(after, shownTicks)
	if left := d.MaxRuns - p.Counts.Run; d.MaxRuns > 0 && left < int64(len(shown.Next)) {
		shown.Next = shown.Next[:max(0, left)]
	}
	shown.Ended = len(shown.Next) == 0
	return shown, nil
}

// readStates sets the states of the jobs of ticks, as far as they can be read.
func (s *Service) readStates(ctx context.Context, namespace string, ticks []store.ScheduleTick) {
	internaljobs.InParallel(len(ticks), readAtOnce, func(i int) {
		t := &ticks[i]
		if t.JobID == "" {
			return
		}
		found, err := s.opts.Jobs.Get(ctx, job.Ref{Namespace: namespace, ID: t.JobID})
		switch {
		case err == nil:
			t.JobState = found.State
		case errors.Is(err, store.ErrNotFound) && !t.JobState.Ended():
			t.JobState = ""
		}
	})
}
