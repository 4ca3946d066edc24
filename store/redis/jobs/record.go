package jobs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

// recordBytes bounds what one script of GetRecords reads, in bytes.
const recordBytes = 4 << 20

// GetRecords reads jobs, some of them in each script.
func (s *Jobs) GetRecords(ctx context.Context, refs []job.Ref) (records []store.Record, err error) {
	shard.CheckBatchSize(len(refs))
	err = s.RetryStale(func() error {
		size := 0
		records = make([]store.Record, 0, len(refs))
		for len(records) < len(refs) {
			part, err := s.getRecords(ctx, refs[len(records):])
			if err != nil {
				return err
			}
			for i := range part {
				if size += part[i].Size(); len(records) > 0 && size > store.RecordBytes {
					return nil
				}
				records = append(records, part[i])
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("get records: %w", err)
	}
	return records, nil
}

// getRecords reads the first of some jobs.
func (s *Jobs) getRecords(ctx context.Context, refs []job.Ref) ([]store.Record, error) {
	args := make([]any, 1, 1+len(refs))
	args[0] = recordBytes
	for _, ref := range refs {
		args = append(args, layout.JobKey(ref))
	}
	reply, err := s.Eval(ctx, scriptGetRecords,
		[]string{s.Keys.Jobs, s.Keys.Runs, s.Keys.Attempts, s.Keys.IDs, s.Keys.Names}, args)
	if err != nil {
		return nil, err
	}
	answer := layout.List(reply)
	if len(answer) < 2 || len(answer) > 1+len(refs) {
		return nil, scriptGetRecords.Malformed()
	}
	now, records := layout.Num(answer[0]), make([]store.Record, len(answer)-1)
	for i := range records {
		one := layout.Strs(answer[1+i])
		if len(one) != 5 {
			return nil, scriptGetRecords.Malformed()
		}
		if one[0] != "" {
			if records[i], err = s.record(refs[i], now, one[0], one[1], one[2], one[3], one[4]); err != nil {
				return nil, err
			}
		}
	}
	return records, nil
}

// record decodes a job. known is the entry of its id.
func (s *Jobs) record(ref job.Ref, now int64, rec, run, history, known, name string) (store.Record, error) {
	q, err := s.QueueOf(rec, name)
	if err != nil {
		return store.Record{}, err
	}
	stored, err := layout.ParseJob(layout.JobKey(ref), rec, run, false, q.Queue)
	if err != nil {
		return store.Record{}, err
	}
	r := store.Record{
		Job: stored.Job(now), MaxAge: time.Duration(stored.Record.MaxAge) * time.Millisecond,
		Number: stored.Record.Created*layout.OrderNumbers + stored.Record.Order,
	}
	if stored.Record.Fingerprint {
		r.Fingerprint = layout.FingerprintOf(known)
	}
	return r, layout.AddEntries(&r.Job, history)
}

// PutRecords stores jobs in one script.
func (s *Jobs) PutRecords(
	ctx context.Context, token store.Token, records []store.Record,
) (outcomes []store.Outcome, err error) {
	shard.CheckBatchSize(len(records))
	if len(records) == 0 {
		return nil, ctx.Err()
	}
	if err := s.health.CheckInsert(); err != nil {
		return nil, fmt.Errorf("put records: %w", err)
	}
	err = s.RetryStale(func() error {
		outcomes, err = s.putRecords(ctx, token, records)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("put records: %w", err)
	}
	return outcomes, nil
}

func (s *Jobs) putRecords(ctx context.Context, token store.Token, records []store.Record) ([]store.Outcome, error) {
	names, position := shard.QueuesOf(records, func(r *store.Record) job.Queue { return r.Queue })
	queues, err := s.Intern(ctx, names)
	if err != nil {
		return nil, err
	}
	c := s.NewCall(scriptPutRecords, s.Keys.Reply(string(token), "p"), queues, nil, 14*len(records))
	for i := range records {
		if err := addRecord(c, position[i], queues[position[i]-1].Number, &records[i]); err != nil {
			return nil, err
		}
	}
	reply, _, err := s.RunDurably(ctx, c)
	if err != nil {
		return nil, err
	}
	codes := layout.Str(reply)
	if len(codes) != len(records) {
		return nil, scriptPutRecords.Malformed()
	}
	outcomes := make([]store.Outcome, len(records))
	for i := range outcomes {
		switch codes[i] {
		case 'c':
			outcomes[i] = store.Created
		case 'e':
			outcomes[i] = store.Existing
		default:
			outcomes[i] = store.Conflict
		}
	}
	return outcomes, nil
}

// addRecord adds the arguments of a job of a queue.
func addRecord(c *layout.Call, position int, number string, r *store.Record) error {
	if len(r.Fingerprint) > 255 {
		return fmt.Errorf("redis: a fingerprint of %d bytes is longer than 255", len(r.Fingerprint))
	}
	created, firstDue, expires := r.CreatedAt.UnixMilli(), r.FirstDueAt.UnixMilli(), int64(0)
	if !r.ExpiresAt.IsZero() {
		expires = r.ExpiresAt.UnixMilli()
	}
	// The time from registration to the first due time is not negative, though the clock may have been set back.
	stored := layout.Record{
		Spec: r.Spec, Fingerprint: r.Fingerprint != nil, MaxAge: layout.Millis(r.MaxAge), Created: created,
		Due: max(firstDue, created), Expires: expires,
	}
	record, err := stored.EncodeWhole(number)
	if err != nil {
		return err
	}
	run := layout.RunOf(&r.Job)
	var history strings.Builder
	for i := range r.History {
		history.Write(r.History[i].JSON())
		history.WriteByte('\n')
	}
	for i := range r.Events {
		history.Write(r.Events[i].JSON())
		history.WriteByte('\n')
	}
	flags := "0"
	if r.Fingerprint != nil {
		flags += "p"
	}
	if history.Len() > 0 {
		flags += "t"
	}
	rest := run.FormatProgress()
	if history.Len() == 0 && run == layout.NewRun(stored.Due) {
		rest = "" // it follows from the record
	}
	c.Add(position, layout.JobKey(r.Ref()), r.Fingerprint, record, flags, rest, history.String(), run.Due, firstDue,
		created, expires, stored.MaxAge, run.State, run.Finished)
	return nil
}
