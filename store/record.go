package store

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
)

// Records is the part of a shard that exports and imports jobs as they are stored.
type Records interface {
	// GetRecords reads up to MaxBatch jobs with bodies and histories, in order: at least the first, and then as many as
	// have RecordBytes together. A job that does not exist is a zero Record. A job that cannot be decoded is an error.
	GetRecords(ctx context.Context, refs []job.Ref) ([]Record, error)

	// PutRecords stores up to MaxBatch jobs as they are and returns an outcome for each, in order. The outcome of a
	// known id is Existing when the stored job is of the same registration (queue, CreatedAt and fingerprint), whatever
	// happened to it since, or when it was removed and the fingerprints are the same, else Conflict. It changes
	// nothing. None of the jobs may be running, or have more entries in its history than its Progress says or than are
	// kept.
	//
	// An unfinished job waits from then on. Its queue is notified by the next Carry at the latest. Ended jobs are
	// subject to retention from their end on. The jobs count in TopicStats as if they had been registered, and had
	// ended, on this shard. In an ordered queue they come after the jobs that it has, in the order of the records.
	PutRecords(ctx context.Context, token Token, records []Record) ([]Outcome, error)

	// ScanLanes reads the settings of lanes of all topics, some with each call: those after a cursor, which is empty at
	// first. next is the cursor of the next call; empty: there are no more. A document may come twice.
	ScanLanes(ctx context.Context, cursor string) (docs []Document, next string, err error)
}

// RecordBytes bounds the size of the records of a call, see Record.Size. A single record always fits.
const RecordBytes = 8 << 20

// Record is a job with what engines store beside it.
type Record struct {
	// Job has its body and history.
	job.Job
	// Fingerprint and MaxAge are those of the NewJob.
	Fingerprint []byte
	MaxAge      time.Duration
	// Number orders the jobs of a queue by their registration. It means nothing else, and PutRecords does not use it.
	Number int64
}

// Size returns about the size of a record in bytes.
func (r *Record) Size() int {
	size := 512 + len(r.URL) + len(r.Body)
	for i := range r.History {
		size += 256 + len(r.History[i].Body)
	}
	return size
}

// IsSameRegistration reports whether both are of the same registration of an id.
func (r *Record) IsSameRegistration(queue job.Queue, createdAt time.Time, fingerprint []byte) bool {
	return r.Queue == queue && r.CreatedAt.Equal(createdAt) && string(r.Fingerprint) == string(fingerprint)
}
