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

// eachRecord calls do for the records of jobs, in their order and as far as they exist, and unreadable for those that
// cannot be read; nil: the error ends it.
func eachRecord(
	ctx context.Context, shard store.Records, refs []job.Ref, do func(i int, r *store.Record) error,
	unreadable func(i int, err error) error,
) error {
	for done, most := 0, sectionLines; done < len(refs); {
		records, err := getRecords(ctx, shard, refs[done:min(done+most, len(refs))])
		switch {
		case err == nil:
		case ctx.Err() != nil || errors.Is(err, store.ErrUnavailable) || unreadable == nil:
			return err
		case most > 1:
			most = 1
			continue
		default:
			if err := unreadable(done, err); err != nil {
				return err
			}
			done++
			continue
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
