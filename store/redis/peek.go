package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
)

// A peeked job is one without its body, and where it stands.
type peeked struct {
	place
	rec *record
	run run
	job job.Job
}

// walk reads jobs out of a sorted set after a place.
func (s *Store) walk(ctx context.Context, sh *part, key, lane, least, greatest string, most int, from place) ([]peeked, error) {
	reply, err := s.eval(ctx, scriptPage, []string{sh.jobs, sh.runs, key, sh.names}, []any{least, greatest, most, from.score, from.member})
	if err != nil {
		return nil, err
	}
	answer := list(reply)
	if len(answer) != 5 {
		return nil, malformed(scriptPage)
	}
	now, found, recs, runs, names := num(answer[0]), strs(answer[1]), strs(answer[2]), strs(answer[3]), strs(answer[4])
	if len(found) != 2*len(recs) || len(recs) != len(runs) || len(recs) != len(names) {
		return nil, malformed(scriptPage)
	}
	part := make([]peeked, 0, len(recs))
	for i := range recs {
		if recs[i] == "" {
			continue
		}
		p, err := sh.peeked(found[2*i], recs[i], runs[i], names[i], now)
		if err != nil {
			return nil, err
		}
		p.lane, p.score = lane, strconv.FormatInt(num(found[2*i+1]), 10)
		part = append(part, p)
	}
	return part, nil
}

// peekChunk bounds the jobs that one script reads whole, to answer them without their bodies.
const peekChunk = 32

// peek reads jobs by name.
func (s *Store) peek(ctx context.Context, sh *part, members []any) ([]peeked, error) {
	all := make([]peeked, 0, len(members))
	for chunk := range slices.Chunk(members, peekChunk) {
		now, recs, runs, names, err := s.peekAt(ctx, sh, chunk)
		if err != nil {
			return nil, err
		}
		for i, m := range chunk {
			if recs[i] == "" {
				continue
			}
			p, err := sh.peeked(str(m), recs[i], runs[i], names[i], now)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// peekAt reads a chunk's records without bodies, runs and names of queues, and the store's clock.
func (s *Store) peekAt(ctx context.Context, sh *part, chunk []any) (now int64, recs, runs, names []string, err error) {
	reply, err := s.eval(ctx, scriptPeek, []string{sh.jobs, sh.runs, sh.names}, chunk)
	if err != nil {
		return 0, nil, nil, nil, err
	}
	answer := list(reply)
	if len(answer) != 4 {
		return 0, nil, nil, nil, malformed(scriptPeek)
	}
	now, recs, runs, names = num(answer[0]), strs(answer[1]), strs(answer[2]), strs(answer[3])
	if len(recs) != len(chunk) || len(runs) != len(chunk) || len(names) != len(chunk) {
		return 0, nil, nil, nil, malformed(scriptPeek)
	}
	return now, recs, runs, names, nil
}

// peeked makes a job of parts without its body.
func (s *part) peeked(m, rec, line, name string, now int64) (peeked, error) {
	q, err := s.queueOf(rec, name)
	if err != nil {
		return peeked{}, err
	}
	p := peeked{place: place{member: m}}
	if p.rec, err = decode(rec, true); err != nil {
		return peeked{}, fmt.Errorf("read job %s: %w", m, err)
	}
	if p.run, err = parseRun(line, p.rec); err != nil {
		return peeked{}, fmt.Errorf("read job %s: %w", m, err)
	}
	p.job = p.rec.job(refOf(m), q.Queue)
	p.job.Progress = progress(p.rec, p.run, now)
	return p, nil
}

// among reads jobs by name and leaves out those not after a place.
func (s *Store) among(ctx context.Context, sh *part, members []string, from place) ([]peeked, error) {
	var all []peeked
	for chunk := range slices.Chunk(members, listChunk) {
		args := make([]any, len(chunk))
		for i, m := range chunk {
			args[i] = m
		}
		part, err := s.peek(ctx, sh, args)
		if err != nil {
			return nil, err
		}
		for i := range part {
			part[i].lane, part[i].score = from.lane, strconv.FormatInt(part[i].run.due, 10)
			if from.score == "" || compare(&part[i], &peeked{place: from}) > 0 {
				all = append(all, part[i])
			}
		}
	}
	return all, nil
}

// isNil tells "there is none" from a fault.
func isNil(err error) bool { return errors.Is(err, redis.Nil) }
