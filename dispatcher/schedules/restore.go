package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

const (
	// restoreEvery is the time between two searches for schedules without an internal job.
	restoreEvery = time.Hour
	// documentPage is the number of documents that are read at once.
	documentPage = 100
)

// Run creates the internal jobs of schedules that have none: after a request that was interrupted, or after a failover of the
// store that lost the job. It searches now and every hour, until ctx ends.
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
			s.opts.Logger.Log(ctx, pause.Level(), "looking for interrupted schedules failed, retrying", "err", err)
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
		docs, _, err := s.opts.Settings.ListDocuments(ctx, after, documentPage, 0)
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

// restoreJobs creates the missing internal jobs of some schedules. Unreadable ones are left to their steps.
func (s *Service) restoreJobs(ctx context.Context, docs []store.Document) error {
	var found []*document
	var keys []store.DocumentKey
	var refs []job.Ref
	for i := range docs {
		if d, err := decode(&docs[i]); err == nil {
			key := docs[i].Key
			found, keys, refs = append(found, d), append(keys, key), append(refs, job.Ref{Namespace: key.Namespace, ID: d.JobID})
		}
	}
	known, err := s.opts.Jobs.KnownOnAny(ctx, refs)
	if err != nil {
		return err
	}
	for i, d := range found {
		if known[i] {
			continue
		}
		s.opts.Logger.Warn("schedule had no internal job, starting it", "schedule", keys[i].Name, "namespace", keys[i].Namespace)
		if err := s.insert(ctx, keys[i].Namespace, keys[i].Name, d); err != nil {
			return err
		}
	}
	return nil
}
