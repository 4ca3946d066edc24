package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// listChunk is about how many keys of jobs one script reads for a list.
const listChunk = 500

// List reads one page: keys of jobs in the order of the list, then the jobs.
func (s *Jobs) List(ctx context.Context, f store.Filter) (store.Page, error) {
	f.Limit = min(max(f.Limit, 1), store.MaxListLimit)
	f.ScanLimit = min(cmp.Or(max(f.ScanLimit, 0), store.MaxScanLimit), store.MaxScanLimit)
	var page store.Page
	err := s.RetryStale(func() error {
		r := pageReader{Jobs: s, filter: &f, page: store.Page{Reached: f.After}}
		err := r.read(ctx)
		page = r.page
		page.Scanned += len(r.placeless)
		return err
	})
	if err != nil {
		return store.Page{}, fmt.Errorf("list: %w", err)
	}
	return page, nil
}

// A pageReader reads one page of a list.
type pageReader struct {
	*Jobs
	filter *store.Filter
	page   store.Page
	// placeless are jobs in ready and claimed that cannot be read, so that their places in the list are not known. They
	// count as looked at, but end no page, which might otherwise not get past them.
	placeless map[string]struct{}
}

func (r *pageReader) read(ctx context.Context) error {
	if r.filter.SelectsUnfinished() && !r.filter.After.Ended {
		if err := r.readUnfinished(ctx); err != nil || r.page.More {
			return err
		}
	}
	if r.filter.SelectsEnded() {
		return r.readEnded(ctx)
	}
	return nil
}

// isFull reports whether the page ends before the next job.
func (r *pageReader) isFull() bool {
	return len(r.page.Jobs) >= r.filter.Limit || r.page.Scanned >= r.filter.ScanLimit
}

// chunk returns how many keys of jobs to read next: while all jobs match, one more than the page takes, which shows
// whether there is another page.
func (r *pageReader) chunk() int {
	n := listChunk
	if len(r.page.Jobs) == r.page.Scanned {
		n = min(n, r.filter.Limit-r.page.Scanned+1)
	}
	return max(1, min(n, r.filter.ScanLimit-r.page.Scanned+1))
}

// An entry is the place of a job among those of its lane, or among those that ended: its due time or its end in ms, and
// its key.
type entry struct {
	at  int64
	key string
}

// parseEntries parses keys of jobs and scores.
func parseEntries(reply any) []entry {
	texts := layout.Strs(reply)
	entries := make([]entry, len(texts)/2)
	for i := range entries {
		entries[i] = entry{at: layout.Num(texts[2*i+1]), key: texts[2*i]}
	}
	return entries
}

// compare orders entries as the list does.
func (r *pageReader) compare(a, b entry) int {
	order := cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.key, b.key))
	if !r.filter.Oldest {
		return -order
	}
	return order
}

// isAfter reports whether an entry comes after a place: that of an entry, or, without a key, that before the entries of
// its time.
func (r *pageReader) isAfter(e, place entry) bool {
	return place.at == 0 || place.key == "" && e.at == place.at || r.compare(e, place) > 0
}

// orderArgs returns the arguments of scripts that include order.lua.
func (r *pageReader) orderArgs(bounds store.TimeRange, after entry, extra ...any) []any {
	newest, low, high, at := "1", "", "", ""
	if r.filter.Oldest {
		newest = "0"
	}
	if !bounds.After.IsZero() {
		low = strconv.FormatInt(layout.MillisAt(bounds.After), 10)
	}
	if !bounds.Before.IsZero() {
		high = strconv.FormatInt(layout.MillisAt(bounds.Before)-1, 10)
	}
	if after.at != 0 {
		at = strconv.FormatInt(after.at, 10)
	}
	return append([]any{newest, low, high, at, after.key}, extra...)
}

// look looks at the job at the next position; nil: one that does not match or cannot be read. One that has another
// position by now is left out. A crash of Redis may have left a job at one position twice.
func (r *pageReader) look(p store.Position, j *job.Job) {
	if p == r.page.Reached {
		return
	}
	r.page.Reached = p
	r.page.Scanned++
	if j != nil && r.filter.Matches(j) && store.PositionOf(j, p.Tie) == p {
		r.page.Jobs, r.page.Ties = append(r.page.Jobs, *j), append(r.page.Ties, p.Tie)
	}
}

// withPrefix returns the keys of the jobs whose ids have the prefix that the filter demands.
func (r *pageReader) withPrefix(entries []entry) []string {
	prefix := layout.JobKey(job.Ref{Namespace: r.filter.Namespace, ID: r.filter.IDPrefix})
	keys := make([]string, 0, len(entries))
	for _, e := range entries {
		if strings.HasPrefix(e.key, prefix) {
			keys = append(keys, e.key)
		}
	}
	return keys
}

// readJobs reads jobs that are not known yet, without their bodies. Those that cannot be decoded are logged, and nil.
// It changes keys.
func (r *pageReader) readJobs(ctx context.Context, keys []string, known map[string]*job.Job) error {
	unknown := slices.DeleteFunc(keys, func(key string) bool {
		_, ok := known[key]
		return ok
	})
	args := make([]any, len(unknown))
	for i, key := range unknown {
		args[i] = key
	}
	return r.EachJob(ctx, args, func(i int, now int64, record, run, queue string) error {
		key := unknown[i]
		known[key] = nil
		if record == "" {
			return nil
		}
		q, err := r.QueueOf(record, queue)
		if errors.Is(err, layout.ErrStale) {
			return err
		}
		var stored layout.StoredJob
		if err == nil {
			stored, err = layout.ParseJob(key, record, run, true, q.Queue)
		}
		if err != nil {
			r.Unreadable.Error("job unreadable, leaving it out of a list", "job", key, "err", err)
			return nil
		}
		j := stored.Job(now)
		known[key] = &j
		return nil
	})
}
