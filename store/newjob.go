package store

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
)

// NewJob is a job to insert.
type NewJob struct {
	job.New
	// Fingerprint identifies the registration of an id that stays known for its topic's id_window after the job's end:
	// ids chosen by clients and ids of outbox jobs. Nil for ids that the server generates.
	Fingerprint []byte
	// MaxAge is the max_age of the job's topic, see Queue.ClaimExpired; zero: none.
	MaxAge time.Duration
}

// The tags of a NewJob's own fields in its stored form.
const (
	tagFingerprint = codec.FirstOwnTag + iota
	tagMaxAge
)

// AppendNewJob appends the form in which outboxes store n.
func AppendNewJob(b []byte, n *NewJob) []byte {
	b = codec.AppendNew(b, &n.New)
	if n.Fingerprint != nil {
		b = codec.AppendField(b, tagFingerprint, n.Fingerprint)
	}
	if n.MaxAge != 0 {
		b = codec.AppendField(b, tagMaxAge, binary.AppendVarint(nil, int64(n.MaxAge)))
	}
	return b
}

// DecodeNewJob reads what AppendNewJob has written. The job shares memory with b.
func DecodeNewJob(b []byte) (n NewJob, err error) {
	n.New, err = codec.DecodeNew(b, func(tag byte, value []byte) error {
		switch tag {
		case tagFingerprint:
			n.Fingerprint = value
			return nil
		case tagMaxAge:
			maxAge, width := binary.Varint(value)
			n.MaxAge = time.Duration(maxAge)
			if width == len(value) {
				return nil
			}
		}
		return fmt.Errorf("%w: tag %d", codec.ErrMalformed, tag)
	})
	if err != nil {
		return NewJob{}, fmt.Errorf("decode a new job: %w", err)
	}
	return n, nil
}

// Outcome classifies the result of an insertion.
type Outcome uint8

// The outcomes of an insertion.
const (
	Created  Outcome = iota + 1
	Existing         // the id is known, with the same fingerprint
	Conflict         // the id is known, and the request differs or the job is cancelled
)

// InsertResult is the result of one insertion. Job is the stored job without its history. When retention has removed
// the job and only its id is remembered, Job has the Spec of the request and the remembered State, FinishedAt and
// Reason.
type InsertResult struct {
	Outcome Outcome
	Job     job.Job
}

// RoutedResult is the result of one insertion by a Router. InsertResult is valid when Err is nil.
type RoutedResult struct {
	InsertResult
	Err error
}
