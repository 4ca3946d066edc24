package storetest

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// GetRecords reads jobs.
func (s *modelShard) GetRecords(ctx context.Context, refs []job.Ref) ([]store.Record, error) {
	m := s.model
	bound(len(refs))
	now, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	size, records := 0, make([]store.Record, 0, len(refs))
	for i, ref := range refs {
		var found store.Record
		if r := s.jobs[ref]; r != nil {
			found = store.Record{
				Job: r.view(now), Fingerprint: r.fingerprint, MaxAge: r.maxAge,
				Number: int64(r.registered),
			}
			found.Spec = clone(r.job.Spec)
			found.History, found.Events = slices.Clone(r.job.History), slices.Clone(r.job.Events)
		}
		if size += found.Size(); i > 0 && size > store.RecordBytes {
			break
		}
		records = append(records, found)
	}
	return records, nil
}

// PutRecords stores jobs one after the other.
func (s *modelShard) PutRecords(
	ctx context.Context, token store.Token, records []store.Record,
) ([]store.Outcome, error) {
	m := s.model
	bound(len(records))
	now, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return once(s, now, call{"put records", token}, func() ([]store.Outcome, error) {
		outcomes := make([]store.Outcome, len(records))
		for i := range records {
			outcomes[i] = s.putRecord(&records[i], now)
		}
		return outcomes, nil
	})
}

// ScanLanes reads all settings of lanes at once.
func (s *modelShard) ScanLanes(ctx context.Context, _ string) (docs []store.Document, next string, err error) {
	if _, err := s.model.open(ctx); err != nil {
		return nil, "", err
	}
	defer s.model.mu.Unlock()
	for key := range s.documents {
		docs = append(docs, s.get(key))
	}
	return docs, "", nil
}

func (s *modelShard) putRecord(put *store.Record, now time.Time) store.Outcome {
	ref := put.Ref()
	if known := s.jobs[ref]; known != nil {
		if put.IsSameRegistration(known.job.Queue, known.job.CreatedAt, known.fingerprint) {
			return store.Existing
		}
		return store.Conflict
	}
	if id := s.ids[ref]; id != nil {
		if bytes.Equal(id.fingerprint, put.Fingerprint) {
			return store.Existing
		}
		return store.Conflict
	}
	r := &record{
		job: put.Job, fingerprint: slices.Clone(put.Fingerprint),
		queue: s.queue(put.Queue), maxAge: put.MaxAge,
	}
	r.job.Spec = clone(put.Spec)
	r.job.History, r.job.Events = slices.Clone(put.History), slices.Clone(put.Events)
	s.registrations++
	r.registered = s.registrations
	s.jobs[ref] = r
	if put.Fingerprint != nil {
		s.ids[ref] = &knownID{topic: r.queue.topic.name, fingerprint: r.fingerprint}
	}
	r.queue.topic.registered++
	if put.State.Ended() {
		s.end(r, put.State, put.Reason, put.FinishedAt)
		return store.Created
	}
	s.hasTTL = s.hasTTL || !r.endOfLife().IsZero()
	r.job.State = job.Scheduled
	s.placeIn(r, &r.queue.due)
	s.reschedule(r.queue, now, true)
	return store.Created
}
