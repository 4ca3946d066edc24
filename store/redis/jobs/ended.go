package jobs

import (
	"context"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// An endedReader reads the ended jobs of some topics, in the order of the list.
type endedReader struct {
	*pageReader
	keys   []string // the sets that have jobs after the place; none: all has been read
	after  entry    // the place up to which the sets were read
	buffer []entry  // the next jobs
}

// readEnded reads the ended jobs of the list. It sets More if there are others after those that it read.
func (r *pageReader) readEnded(ctx context.Context) error {
	readers, err := r.endedReaders(ctx)
	if err != nil {
		return err
	}
	for {
		entries, err := nextEnded(ctx, readers, r.chunk())
		if err != nil || len(entries) == 0 {
			return err
		}
		if r.isFull() {
			r.page.More = true
			return nil
		}
		known := make(map[string]*job.Job, len(entries))
		if err := r.readJobs(ctx, r.withPrefix(entries), known); err != nil {
			return err
		}
		for _, e := range entries {
			if r.isFull() {
				r.page.More = true
				return nil
			}
			r.look(store.Position{Ended: true, At: e.at, Tie: e.key}, known[e.key])
		}
	}
}

// endedReaders returns readers of all topics that the filter selects, topicsChunk each.
func (r *pageReader) endedReaders(ctx context.Context) (readers []*endedReader, err error) {
	var after entry
	if at := r.filter.After; at.Ended {
		after = entry{at.At, at.Tie}
	}
	for from, more := "", true; more; {
		var topics []string
		if topics, from, more, err = r.topicsFrom(ctx, r.filter, from); err != nil {
			return nil, err
		}
		e := &endedReader{pageReader: r, after: after}
		for _, topic := range topics {
			t := r.Keys.Topic(r.filter.Namespace, topic)
			for _, state := range []job.State{job.Delivered, job.Dead, job.Cancelled} {
				if r.filter.SelectsState(state) {
					e.keys = append(e.keys, t.Ended(layout.FormatState(state)))
				}
			}
		}
		readers = append(readers, e)
	}
	return readers, nil
}

// nextEnded returns up to n jobs from readers, in the order of the list.
func nextEnded(ctx context.Context, readers []*endedReader, n int) (entries []entry, err error) {
	for len(entries) < n {
		var first *endedReader
		for _, e := range readers {
			if err := e.fill(ctx, n-len(entries)); err != nil {
				return nil, err
			}
			if len(e.buffer) > 0 && (first == nil || e.compare(e.buffer[0], first.buffer[0]) < 0) {
				first = e
			}
		}
		if first == nil {
			return entries, nil
		}
		entries = append(entries, first.buffer[0])
		first.buffer = first.buffer[1:]
	}
	return entries, nil
}

// fill reads the next jobs, up to n, if the buffer is empty and there are any.
func (e *endedReader) fill(ctx context.Context, n int) error {
	if len(e.buffer) > 0 || len(e.keys) == 0 {
		return nil
	}
	answer, err := e.EvalList(ctx, scriptEnded, 2, e.keys, e.orderArgs(e.filter.Ended, e.after, n))
	if err != nil {
		return err
	}
	e.buffer = parseEntries(answer[0])
	if len(e.buffer) > 0 {
		e.after = e.buffer[len(e.buffer)-1]
	}
	var left []string
	for _, position := range layout.List(answer[1]) {
		at := layout.Num(position)
		if at < 1 || at > int64(len(e.keys)) {
			return scriptEnded.Malformed()
		}
		left = append(left, e.keys[at-1])
	}
	e.keys = left
	return nil
}
