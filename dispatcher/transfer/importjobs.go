package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// store stores the content of a section: first its documents. Of jobs with the same id it stores the first one.
func (i *importer) store(ctx context.Context, p *section) error {
	if err := i.storeDocuments(ctx, p.documents); err != nil {
		return err
	}
	byStore := make(map[*Store][][]numbered[store.Record]) // and by shard
	seen := make(map[job.Ref]bool)
	for k := range p.jobs {
		n := &p.jobs[k]
		s := i.storeOfNamespace[n.value.Namespace]
		if s == nil {
			return faultf(n.line, "the namespace %s is not known: its line is missing", n.value.Namespace)
		}
		if seen[n.value.Ref()] {
			i.leaveOut(n)
			continue
		}
		seen[n.value.Ref()] = true
		if byStore[s] == nil {
			byStore[s] = make([][]numbered[store.Record], len(s.Shards()))
		}
		shard := store.ShardOf(len(s.Shards()), n.value.Queue)
		byStore[s][shard] = append(byStore[s][shard], *n)
	}
	if len(byStore) > 0 {
		if err := i.note(ctx); err != nil {
			return err
		}
	}
	for s, records := range byStore {
		if err := i.leaveOutElsewhere(ctx, s, records); err != nil {
			return err
		}
		err := onShards(s, func(n int, shard store.Shard) error {
			if len(records[n]) == 0 {
				return nil
			}
			return i.storeRecords(ctx, shard, records[n])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// onShards calls do for all shards at once. Of several errors it returns the conflict of the first line.
func onShards(s *Store, do func(n int, shard store.Shard) error) error {
	errs := make([]error, len(s.Shards()))
	var calls sync.WaitGroup
	for n, shard := range s.Shards() {
		calls.Go(func() { errs[n] = do(n, shard) })
	}
	calls.Wait()
	slices.SortStableFunc(errs, func(a, b error) int { return cmp.Compare(lineOfError(a), lineOfError(b)) })
	return cmp.Or(errs...)
}

// lineOfError returns the line of a conflict; 0: it is another error.
func lineOfError(err error) int {
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		return conflict.Line
	}
	return 0
}

// storeRecords stores jobs of a shard.
func (i *importer) storeRecords(ctx context.Context, shard store.Shard, records []numbered[store.Record]) error {
	if i.dry {
		return i.checkRecords(ctx, shard, records)
	}
	put := make([]store.Record, len(records))
	for k := range records {
		put[k] = records[k].value
	}
	var outcomes []store.Outcome
	token := store.NewToken()
	if err := retry(ctx, func() (err error) {
		outcomes, err = shard.PutRecords(ctx, token, put)
		return err
	}); err != nil {
		return fmt.Errorf("store jobs: %w", err)
	}
	created := int64(0)
	var existing []numbered[store.Record]
	for k, outcome := range outcomes {
		switch outcome {
		case store.Created:
			created++
		case store.Existing:
			existing = append(existing, records[k])
		default:
			i.leaveOut(&records[k])
		}
	}
	stale, err := staleOf(ctx, shard, existing)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.result.Created += created
	i.result.Existing += int64(len(existing))
	for k := range stale {
		i.stale.add(&stale[k])
	}
	return err
}

// staleOf returns the jobs that are stored with other progress, or not any more.
func staleOf(
	ctx context.Context, shard store.Records, existing []numbered[store.Record],
) (stale []numbered[store.Record], err error) {
	same, now := make([]bool, len(existing)), time.Now()
	err = eachRecord(ctx, shard, refsOf(existing), func(k int, r *store.Record) error {
		same[k] = isSameProgress(&existing[k].value.Progress, &lineOf(r, now).Progress)
		return nil
	}, nil)
	for k := range existing {
		if !same[k] {
			stale = append(stale, existing[k])
		}
	}
	return stale, err
}

// isSameProgress reports whether nothing has happened to a job between two moments.
func isSameProgress(a, b *job.Progress) bool {
	return a.State == b.State && a.Reason == b.Reason && a.Version == b.Version && a.Generation == b.Generation &&
		a.Attempts == b.Attempts &&
		a.FailedAttempts == b.FailedAttempts && a.ConsecutiveLost == b.ConsecutiveLost && a.DueAt.Equal(b.DueAt)
}

// leaveOut counts a job that is not stored.
func (i *importer) leaveOut(n *numbered[store.Record]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.leftOut.add(n)
}

// refuse returns the error of a job whose id the stores know for another one. An import that has begun leaves the job
// out: it is one of two in the file with the same id.
func (i *importer) refuse(n *numbered[store.Record], removed string) error {
	if i.dry && i.revision == 0 {
		return &ConflictError{Line: n.line, What: "job " + n.value.Namespace + "/" + n.value.ID + removed}
	}
	i.leaveOut(n)
	return nil
}

// leaveOutElsewhere removes the jobs whose ids shards know that they do not belong to.
func (i *importer) leaveOutElsewhere(ctx context.Context, s *Store, records [][]numbered[store.Record]) error {
	elsewhere := make(map[job.Ref]bool)
	err := onShards(s, func(n int, shard store.Shard) error {
		others := slices.Concat(slices.Concat(records[:n]...), slices.Concat(records[n+1:]...))
		if len(others) == 0 {
			return nil
		}
		known, err := lookFor(ctx, shard, others)
		if err != nil {
			return err
		}
		for k, status := range known {
			if !status.Known() {
				continue
			}
			if err := i.refuse(&others[k], ""); err != nil {
				return err
			}
			i.mu.Lock()
			elsewhere[others[k].value.Ref()] = true
			i.mu.Unlock()
		}
		return nil
	})
	for n := range records {
		records[n] = slices.DeleteFunc(records[n],
			func(r numbered[store.Record]) bool { return elsewhere[r.value.Ref()] })
	}
	return err
}

// lookFor returns what a shard knows of the ids of jobs.
func lookFor(
	ctx context.Context, shard store.Shard, jobs []numbered[store.Record],
) (known []store.IDStatus, err error) {
	refs := refsOf(jobs)
	err = retry(ctx, func() error {
		known, err = shard.Known(ctx, refs)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for jobs: %w", err)
	}
	return known, nil
}

func refsOf(records []numbered[store.Record]) []job.Ref {
	refs := make([]job.Ref, len(records))
	for k := range records {
		refs[k] = records[k].value.Ref()
	}
	return refs
}

// checkRecords refuses jobs whose ids have jobs of other registrations on their shard, or had them and are remembered.
func (i *importer) checkRecords(ctx context.Context, shard store.Shard, records []numbered[store.Record]) error {
	known, err := lookFor(ctx, shard, records)
	if err != nil {
		return err
	}
	var stored []numbered[store.Record]
	for k, status := range known {
		switch {
		case status.Exists:
			stored = append(stored, records[k])
		case status.Known():
			if err := i.refuse(&records[k], " (it was removed, and its id is remembered)"); err != nil {
				return err
			}
		}
	}
	return eachRecord(ctx, shard, refsOf(stored), func(k int, r *store.Record) error {
		if stored[k].value.IsSameRegistration(r.Queue, r.CreatedAt, r.Fingerprint) {
			return nil
		}
		return i.refuse(&stored[k], "")
	}, nil)
}
