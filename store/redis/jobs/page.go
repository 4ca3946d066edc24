package jobs

import (
	"context"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/script"
)

// A place is a position in a list: a lane (empty for ended jobs, which are listed by topic), a score in ms, and a job.
type place struct {
	lane   string // "<lane>\x00<number>", as in Keys.Lanes
	score  string
	jobKey string
}

func (p place) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.lane + "\n" + p.score + "\n" + p.jobKey))
}

func parsePlace(cursor string) (place, error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	parts := strings.Split(string(text), "\n")
	if err != nil || len(parts) != 3 {
		return place{}, store.ErrCursor
	}
	if parts[1] != "" {
		if _, err := strconv.ParseInt(parts[1], 10, 64); err != nil {
			return place{}, store.ErrCursor
		}
	}
	return place{parts[0], parts[1], parts[2]}, nil
}

// A listedJob is a job without its body, and its place.
type listedJob struct {
	place
	due int64
	job job.Job
}

// A jobPage is a part of a sorted set.
type jobPage struct {
	jobs []listedJob // without those that cannot be read
	read int         // with those
	to   place       // of the last one read
	more bool        // there may be others after it
}

// readPage reads up to most jobs of a sorted set after a place, fewer if they are large.
func (s *Jobs) readPage(ctx context.Context, key, least, greatest string, most int, from place) (jobPage, error) {
	answer, err := s.EvalList(ctx, scriptPage, 6, []string{s.Keys.Jobs, s.Keys.Runs, key, s.Keys.Names}, []any{least, greatest, most, from.score, from.jobKey})
	if err != nil {
		return jobPage{}, err
	}
	now, found := script.Num(answer[0]), script.Strs(answer[1])
	records, runs, names := script.Strs(answer[2]), script.Strs(answer[3]), script.Strs(answer[4])
	if len(found) != 2*len(records) || len(records) != len(runs) || len(records) != len(names) {
		return jobPage{}, scriptPage.Malformed()
	}
	jobs := make([]listedJob, 0, len(records))
	for i := range records {
		from.score, from.jobKey = strconv.FormatInt(script.Num(found[2*i+1]), 10), found[2*i]
		if records[i] == "" {
			continue
		}
		j, ok, err := s.parse(from.jobKey, records[i], runs[i], names[i], now)
		if err != nil {
			return jobPage{}, err
		}
		if j.place = from; ok {
			jobs = append(jobs, j)
		}
	}
	return jobPage{jobs: jobs, read: len(records), to: from, more: script.Num(answer[5]) != 0}, nil
}

// readLaneJobs reads jobs of a lane, in the order of their due times.
func (s *Jobs) readLaneJobs(ctx context.Context, jobKeys []string, lane string) ([]listedJob, error) {
	args := make([]any, len(jobKeys))
	for i, key := range jobKeys {
		args[i] = key
	}
	all := make([]listedJob, 0, len(jobKeys))
	err := s.EachJob(ctx, args, func(i int, now int64, record, run, queue string) error {
		if record == "" {
			return nil
		}
		j, ok, err := s.parse(jobKeys[i], record, run, queue, now)
		if !ok || err != nil {
			return err
		}
		j.place = place{lane: lane, score: strconv.FormatInt(j.due, 10), jobKey: jobKeys[i]}
		all = append(all, j)
		return nil
	})
	return all, err
}

// parse parses a job without its body. One that cannot be read is not ok: it is logged, and a page has the others.
func (s *Jobs) parse(jobKey, record, run, queue string, now int64) (parsed listedJob, ok bool, err error) {
	var stored layout.StoredJob
	q, err := s.QueueOf(record, queue)
	if err == nil {
		stored, err = layout.ParseJob(jobKey, record, run, true, q.Queue)
	}
	switch {
	case err == nil:
		return listedJob{due: stored.Run.Due, job: stored.Job(now)}, true, nil
	case errors.Is(err, script.ErrStale):
		return listedJob{}, false, err
	}
	s.Unreadable.Error("job unreadable, leaving it out of a list", "job", jobKey, "err", err)
	return listedJob{}, false, nil
}
