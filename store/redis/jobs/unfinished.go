package jobs

import (
	"context"
	"slices"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store/redis/layout"
)

// A laneJobs is what one script found in a lane.
type laneJobs struct {
	lane   lane
	due    []entry  // in the order of the list
	more   bool     // there may be more in due
	others []string // jobs in ready and claimed, which are not in the order of the list
}

// readUnfinished reads the unfinished jobs of the list. It sets More if there may be others after those that it read.
func (r *pageReader) readUnfinished(ctx context.Context) error {
	lanes := newLaneReader(r.Jobs, r.filter)
	var pending []lane
	from := r.filter.After // applies to its lane, which can only be the first of those that are pending
	known := map[string]*job.Job{}
	for {
		for len(pending) == 0 {
			if lanes.done() {
				return nil
			}
			if r.isFull() || lanes.read >= listLanes {
				r.page.More = true
				if r.page.Reached.Compare(lanes.reached, r.filter.Oldest) < 0 {
					r.page.Reached = lanes.reached
				}
				return nil
			}
			var err error
			if pending, err = lanes.next(ctx); err != nil {
				return err
			}
		}
		var after entry
		if pending[0].contains(from) {
			after = entry{from.At, from.Tie}
		} else {
			clear(known)
		}
		found, read, err := r.readLanes(ctx, pending, after)
		if err != nil {
			return err
		}
		if err := r.readJobs(ctx, r.keysOf(found), known); err != nil {
			return err
		}
		for i := range found {
			place := entry{}
			if found[i].lane == pending[0] {
				place = after
			}
			for _, e := range r.merge(&found[i], place, known) {
				if r.isFull() {
					r.page.More = true
					return nil
				}
				r.look(found[i].lane.position(e), known[e.key])
			}
		}
		pending = pending[read:]
		if n := len(found); n > 0 && found[n-1].more {
			last := &found[n-1]
			from = last.lane.position(last.due[len(last.due)-1])
			pending = append([]lane{last.lane}, pending...)
		}
	}
}

// readLanes reads keys of jobs of lanes, beginning after a place in the first. read is how many lanes it read: fewer
// than all if these have many jobs. Only the last of them may have more.
func (r *pageReader) readLanes(ctx context.Context, lanes []lane, after entry) (found []laneJobs, read int, err error) {
	var states []byte
	for state, letter := range map[job.State]byte{job.Scheduled: 's', job.Ready: 'r', job.Running: 'c'} {
		if r.filter.SelectsState(state) {
			states = append(states, letter)
		}
	}
	keys := make([]string, 1, 1+3*len(lanes))
	keys[0] = r.Keys.Clock
	for _, l := range lanes {
		keys = append(keys, r.Keys.Due(l.number), r.Keys.Ready(l.number), r.Keys.Claimed(l.number))
	}
	reply, err := r.Eval(ctx, scriptUnfinished, keys, r.orderArgs(r.filter.Due, after, r.chunk(), states))
	if err != nil {
		return nil, 0, err
	}
	answer := layout.List(reply)
	if len(answer) == 0 {
		return nil, 0, scriptUnfinished.Malformed()
	}
	read = int(layout.Num(answer[0]))
	if read < 1 || read > len(lanes) {
		return nil, 0, scriptUnfinished.Malformed()
	}
	found = make([]laneJobs, len(answer)-1)
	for i := range found {
		part := layout.List(answer[1+i])
		if len(part) != 4 || layout.Num(part[0]) < 1 || layout.Num(part[0]) > int64(read) {
			return nil, 0, scriptUnfinished.Malformed()
		}
		found[i] = laneJobs{
			lane: lanes[layout.Num(part[0])-1], due: parseEntries(part[1]), more: layout.Num(part[2]) != 0,
			others: layout.Strs(part[3]),
		}
	}
	return found, read, nil
}

// keysOf returns the keys of jobs that must be read: the due times of those in ready and claimed are not known before.
func (r *pageReader) keysOf(found []laneJobs) (keys []string) {
	for i := range found {
		keys = append(append(keys, r.withPrefix(found[i].due)...), found[i].others...)
	}
	return keys
}

// merge returns the jobs of a lane after a place in the order of the list, up to the last that was read of due.
func (r *pageReader) merge(found *laneJobs, after entry, known map[string]*job.Job) []entry {
	entries := slices.Clone(found.due)
	for _, key := range found.others {
		j := known[key]
		if j == nil {
			if r.placeless == nil {
				r.placeless = make(map[string]struct{})
			}
			r.placeless[key] = struct{}{}
			continue
		}
		e := entry{at: j.DueAt.UnixMilli(), key: key}
		if r.isAfter(e, after) && (!found.more || r.compare(e, found.due[len(found.due)-1]) < 0) {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, r.compare)
	return entries
}
