package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

const (
	// restoreEvery is the time between two searches for schedules without an internal job.
	restoreEvery = time.Hour
	// documentPage is the number of documents that are read at once.
	documentPage = 100
)

// Run restarts the schedules that have lost their internal jobs. It searches now and every hour, until ctx ends.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(restoreEvery)
	defer tick.Stop()
	for {
		var pause store.Backoff
		for {
			err := s.restore(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			s.opts.Logger.Log(ctx, pause.Level(), "looking for stopped schedules failed, retrying", "err", err)
			pause.Wait(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// restore searches once.
func (s *Service) restore(ctx context.Context) error {
	return s.eachPage(ctx, func(docs []store.Document) error { return s.restoreJobs(ctx, docs) })
}

// eachPage calls do for the documents of all schedules, some at a time.
func (s *Service) eachPage(ctx context.Context, do func([]store.Document) error) error {
	after := store.DocumentKey{Kind: store.KindSchedule}
	for {
		docs, _, err := s.opts.Settings.ListDocuments(ctx, after, documentPage)
		if err != nil {
			return fmt.Errorf("list schedules: %w", err)
		}
		if err := do(docs); err != nil {
			return err
		}
		if len(docs) < documentPage {
			return nil
		}
		after = docs[len(docs)-1].Key
	}
}

// Each calls do for all schedules of all namespaces, without their progress, except unreadable ones.
func (s *Service) Each(ctx context.Context, do func(*store.Schedule) error) error {
	return s.eachPage(ctx, func(docs []store.Document) error {
		for i := range docs {
			d, err := decode(&docs[i])
			if err != nil {
				continue
			}
			if err := do(new(d.schedule(&docs[i]))); err != nil {
				return err
			}
		}
		return nil
	})
}

// restoreJobs restarts those of some schedules that have lost their internal jobs. Unreadable ones are left to their
// steps.
func (s *Service) restoreJobs(ctx context.Context, docs []store.Document) error {
	var found []*document
	var keys []store.DocumentKey
	var refs []job.Ref
	for i := range docs {
		if d, err := decode(&docs[i]); err == nil {
			key := docs[i].Key
			found, keys, refs = append(found, d), append(keys, key), append(refs,
				job.Ref{Namespace: key.Namespace, ID: d.JobID})
		}
	}
	statuses, err := s.opts.Jobs.StatusOnAny(ctx, refs)
	if err != nil {
		return err
	}
	for i, d := range found {
		if statuses[i].Unfinished() {
			continue
		}
		_, _, err := s.restart(ctx, keys[i], d)
		switch {
		case errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil:
			return err
		case err != nil: // it does not stop the search for others
			s.opts.Logger.Error("schedule has no internal job, restarting it "+
				"failed", "schedule", keys[i].Name, "namespace", keys[i].Namespace, "err", err)
		}
	}
	return nil
}

// restart gives a schedule whose internal job is lost, as by the document lost, a new one, and returns its document;
// nil: it was deleted.
func (s *Service) restart(
	ctx context.Context, key store.DocumentKey, lost *document,
) (*document, store.Document, error) {
	for range maxConflicts {
		d, doc, err := s.read(ctx, key.Namespace, key.Name)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil, doc, nil
		case err != nil || d.JobID != lost.JobID: // or another process was first
			return d, doc, err
		}
		now := job.Millis(time.Now())
		if d.Backfill != nil && d.Backfill.EndedAt.IsZero() && !lost.ordered {
			d.Backfill.EndedAt, d.Backfill.Failed = now, "its progress was lost with data of the store"
		}
		if d.MaxRuns > 0 && !d.Paused {
			d.Paused = true
			d.Pause = policy.Pause{
				At: now, By: actorOf(key.Name),
				Note: "its counts were lost with data of the store: once resumed, max_runs counts from 0",
			}
		}
		if err := s.insert(ctx, key, d); err != nil {
			return nil, doc, err
		}
		doc, err = s.write(ctx, doc, d)
		if errors.Is(err, store.ErrVersion) {
			continue
		}
		if err == nil {
			s.opts.Logger.Error(
				"schedule had lost its progress with data of the store: ticks count from now on", "schedule", key.Name,
				"namespace", key.Namespace,
			)
		}
		return d, doc, err
	}
	return nil, store.Document{}, store.ErrContended
}

// InternalJob returns the internal job of the schedule that a document holds. The error is that of a document that
// cannot be decoded.
func InternalJob(doc *store.Document) (job.Ref, error) {
	d, err := decode(doc)
	if err != nil {
		return job.Ref{}, err
	}
	return job.Ref{Namespace: doc.Key.Namespace, ID: d.JobID}, nil
}
