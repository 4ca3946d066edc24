package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// UnreadableError is the error of an export that is complete but for jobs that cannot be read.
type UnreadableError struct{ Jobs int64 }

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("the file is complete but for %d jobs that cannot be read: see the log, and ringback verify",
		e.Jobs)
}

// maxUnreadable bounds the jobs that an export leaves out: more are a fault of something else. It is a variable for
// tests.
var maxUnreadable = 1000

// eachReadable calls do for the records of jobs, in their order, and unreadable for those that cannot be read.
func eachReadable(
	ctx context.Context, shard store.Records, jobs []listed, do func(*store.Record) error,
	unreadable func(of listed, err error) error,
) error {
	for done, most := 0, sectionLines; done < len(jobs); {
		refs := make([]job.Ref, min(most, len(jobs)-done))
		for i := range refs {
			refs[i] = jobs[done+i].ref
		}
		records, err := getRecords(ctx, shard, refs)
		switch {
		case err == nil:
		case ctx.Err() != nil || errors.Is(err, store.ErrUnavailable):
			return err
		case most > 1:
			most = 1
			continue
		default:
			if err := unreadable(jobs[done], err); err != nil {
				return err
			}
			done++
			continue
		}
		for i := range records {
			if records[i].ID == "" {
				continue
			}
			if err := do(&records[i]); err != nil {
				return err
			}
		}
		done += len(records)
	}
	return nil
}

// eachRecord calls do for the records of jobs, as far as they exist.
func eachRecord(ctx context.Context, shard store.Records, refs []job.Ref, do func(i int, r *store.Record) error) error {
	for done := 0; done < len(refs); {
		records, err := getRecords(ctx, shard, refs[done:min(done+store.MaxBatch, len(refs))])
		if err != nil {
			return err
		}
		for i := range records {
			if records[i].ID == "" {
				continue
			}
			if err := do(done+i, &records[i]); err != nil {
				return err
			}
		}
		done += len(records)
	}
	return nil
}

// getRecords returns the records of some of refs, from the first on. It waits for a store that is unavailable.
func getRecords(ctx context.Context, shard store.Records, refs []job.Ref) (records []store.Record, err error) {
	err = retry(ctx, func() error {
		records, err = shard.GetRecords(ctx, refs)
		return err
	})
	return records, err
}
