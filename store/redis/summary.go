package redis

import (
	"context"
	"strconv"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store/redis/layout"
)

// A jobSummary job is one without its body, and where it stands.
type jobSummary struct {
	place
	run layout.Run
	job job.Job
}

// walk reads jobs out of a sorted set after a place, at most so many, or fewer where they are large. It answers the place
// up to which it came, and whether there may be more.
func (s *Store) walk(ctx context.Context, sh *shard, key, least, greatest string, most int, from place) (jobs []jobSummary, to place, more bool, err error) {
	reply, err := s.eval(ctx, scriptPage, []string{sh.keys.Jobs, sh.keys.Runs, key, sh.keys.Names}, []any{least, greatest, most, from.score, from.member})
	if err != nil {
		return nil, from, false, err
	}
	answer := list(reply)
	if len(answer) != 6 {
		return nil, from, false, malformed(scriptPage)
	}
	now, found, recs, runs, names := num(answer[0]), strs(answer[1]), strs(answer[2]), strs(answer[3]), strs(answer[4])
	if len(found) != 2*len(recs) || len(recs) != len(runs) || len(recs) != len(names) {
		return nil, from, false, malformed(scriptPage)
	}
	jobs = make([]jobSummary, 0, len(recs))
	for i := range recs {
		from.score, from.member = strconv.FormatInt(num(found[2*i+1]), 10), found[2*i]
		if recs[i] == "" {
			continue
		}
		p, err := sh.summary(from.member, recs[i], runs[i], names[i], now)
		if err != nil {
			return nil, from, false, err
		}
		p.place = from
		jobs = append(jobs, p)
	}
	return jobs, from, num(answer[5]) != 0, nil
}

// getSummaries reads jobs by name.
func (s *Store) getSummaries(ctx context.Context, sh *shard, members []any) ([]jobSummary, error) {
	all := make([]jobSummary, 0, len(members))
	err := s.eachSummary(ctx, sh, members, func(i int, now int64, rec, line, name string) error {
		if rec == "" {
			return nil
		}
		p, err := sh.summary(str(members[i]), rec, line, name, now)
		if err != nil {
			return err
		}
		all = append(all, p)
		return nil
	})
	return all, err
}

// eachSummary reads jobs by name and calls each with every one's position, the store's clock, its record without the body
// (empty: there is none), run, and name of its queue.
func (s *Store) eachSummary(ctx context.Context, sh *shard, members []any, each func(i int, now int64, rec, line, name string) error) error {
	for done := 0; done < len(members); {
		chunk := members[done:min(done+listChunk, len(members))]
		reply, err := s.eval(ctx, scriptPeek, []string{sh.keys.Jobs, sh.keys.Runs, sh.keys.Names}, chunk)
		if err != nil {
			return err
		}
		answer := list(reply)
		if len(answer) != 4 {
			return malformed(scriptPeek)
		}
		now, recs, runs, names := num(answer[0]), strs(answer[1]), strs(answer[2]), strs(answer[3])
		if n := len(recs); n == 0 || n > len(chunk) || len(runs) != n || len(names) != n {
			return malformed(scriptPeek)
		}
		for i := range recs {
			if err := each(done+i, now, recs[i], runs[i], names[i]); err != nil {
				return err
			}
		}
		done += len(recs)
	}
	return nil
}

// jobSummary makes a job of parts without its body.
func (s *shard) summary(m, rec, line, name string, now int64) (jobSummary, error) {
	q, err := s.queueOf(rec, name)
	if err != nil {
		return jobSummary{}, err
	}
	stored, err := layout.ParseJob(m, rec, line, true, q.Queue)
	if err != nil {
		return jobSummary{}, err //nolint:wrapcheck // it names the job
	}
	return jobSummary{place: place{member: m}, run: stored.Run, job: stored.Job(now)}, nil
}

// laneSummaries reads jobs of a lane by name, each with its place there.
func (s *Store) laneSummaries(ctx context.Context, sh *shard, members []string, lane string) ([]jobSummary, error) {
	args := make([]any, len(members))
	for i, m := range members {
		args[i] = m
	}
	all, err := s.getSummaries(ctx, sh, args)
	for i := range all {
		all[i].lane, all[i].score = lane, strconv.FormatInt(all[i].run.Due, 10)
	}
	return all, err
}
