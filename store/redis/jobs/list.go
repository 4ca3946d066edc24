package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/script"
)

const (
	// listLanes and listJobs bound the lanes and jobs that are read for one page. Beyond them the page is short.
	listLanes = 500
	listJobs  = 2000
	listChunk = 500
)

// List reads one page.
func (s *Jobs) List(ctx context.Context, f store.Filter) (store.Page, error) {
	var from place
	if f.Cursor != "" {
		var err error
		if from, err = parsePlace(f.Cursor); err != nil {
			return store.Page{}, fmt.Errorf("list: %w", err)
		}
	}
	f.Limit = min(max(f.Limit, 1), 500)
	var page store.Page
	err := s.RetryStale(func() (err error) {
		if f.State.Ended() {
			page, err = s.listEnded(ctx, &f, from)
		} else {
			page, err = s.listLanes(ctx, &f, from)
		}
		return err
	})
	if err != nil {
		return store.Page{}, fmt.Errorf("list: %w", err)
	}
	return page, nil
}

// window returns the filter's bounds for ZRANGEBYSCORE.
func window(f *store.Filter) (least, greatest string) {
	least, greatest = "-inf", "+inf"
	if !f.After.IsZero() {
		least = strconv.FormatInt(layout.MillisAt(f.After), 10)
	}
	if !f.Before.IsZero() {
		greatest = "(" + strconv.FormatInt(layout.MillisAt(f.Before), 10)
	}
	return least, greatest
}

// listEnded lists a topic's jobs that ended in a state.
func (s *Jobs) listEnded(ctx context.Context, f *store.Filter, from place) (store.Page, error) {
	t := s.Keys.Topic(f.Namespace, f.Topic)
	key := map[job.State]string{job.Delivered: t.Done, job.Dead: t.Dead, job.Cancelled: t.Cancelled}[f.State]
	least, greatest := window(f)
	var page store.Page
	for seen := 0; seen < listJobs; {
		part, err := s.readPage(ctx, key, least, greatest, min(f.Limit+1, listChunk), from)
		if err != nil {
			return store.Page{}, err
		}
		for i := range part.jobs {
			if len(page.Jobs) == f.Limit {
				page.Cursor = from.cursor()
				return page, nil
			}
			from = part.jobs[i].place
			if matches(f, &part.jobs[i]) {
				page.Jobs = append(page.Jobs, part.jobs[i].job)
			}
		}
		if !part.more {
			return page, nil
		}
		from, seen = part.to, seen+max(part.read, 1)
	}
	page.Cursor = from.cursor()
	return page, nil
}

// listLanes lists the due, ready or claimed jobs of a topic, lane by lane.
func (s *Jobs) listLanes(ctx context.Context, f *store.Filter, from place) (store.Page, error) {
	lanes, more, err := s.lanesOf(ctx, f, from)
	if err != nil {
		return store.Page{}, err
	}
	early := false // jobs may be ready before their moment
	if f.State == job.Scheduled {
		if early, err = s.wasClockAhead(ctx); err != nil {
			return store.Page{}, err
		}
	}
	var page store.Page
	seen := 0
	for i, lane := range lanes {
		if lane != from.lane {
			from = place{lane: lane}
		}
		unordered, err := s.listUnordered(ctx, f.State, early, lane)
		if err != nil {
			return store.Page{}, err
		}
		for {
			part, err := s.listLane(ctx, f, from, unordered)
			if err != nil {
				return store.Page{}, err
			}
			for k := range part.jobs {
				if len(page.Jobs) == f.Limit {
					page.Cursor = from.cursor()
					return page, nil
				}
				from = part.jobs[k].place
				if matches(f, &part.jobs[k]) {
					page.Jobs = append(page.Jobs, part.jobs[k].job)
				}
			}
			seen += max(part.read, 1)
			if part.more {
				from = part.to
			}
			if part.more && seen < listJobs {
				continue
			}
			if seen >= listJobs && (part.more || i+1 < len(lanes) || more) {
				page.Cursor = from.cursor()
				return page, nil
			}
			break
		}
	}
	if more {
		page.Cursor = place{lane: lanes[len(lanes)-1], score: strconv.FormatInt(layout.Never, 10)}.cursor()
	}
	return page, nil
}

// lanesOf returns the lanes to list, beginning with the cursor's. more: there are others.
func (s *Jobs) lanesOf(ctx context.Context, f *store.Filter, from place) (lanes []string, more bool, err error) {
	if f.Lane != "" {
		// Read, not taken from the cache: the sets that are read next are found by the number alone.
		q := job.Queue{Namespace: f.Namespace, Topic: f.Topic, Lane: f.Lane}
		number, err := s.Client.HGet(ctx, s.Keys.Queues, q.String()).Result()
		if connect.IsNil(err) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, connect.MapError(ctx, err)
		}
		return []string{f.Lane + "\x00" + number}, false, nil
	}
	least := "-"
	if from.lane != "" {
		least = "[" + from.lane
	}
	lanes, err = s.Client.ZRangeByLex(ctx, s.Keys.TopicLanes(layout.TopicName(f.Namespace, f.Topic)),
		&redis.ZRangeBy{Min: least, Max: "+", Count: listLanes}).Result()
	if err != nil {
		return nil, false, connect.MapError(ctx, err)
	}
	return lanes, len(lanes) == listLanes, nil
}

// listUnordered reads the jobs of a lane that are not sorted by due time: the ready list, or the claimed jobs. Both are bounded.
func (s *Jobs) listUnordered(ctx context.Context, state job.State, early bool, lane string) (jobs []listedJob, err error) {
	_, number, _ := strings.Cut(lane, "\x00")
	var members []string
	switch {
	case state == job.Ready || early:
		members, err = s.Client.LRange(ctx, s.Keys.Ready(number), 0, -1).Result()
	case state == job.Running:
		members, err = s.Client.ZRange(ctx, s.Keys.Claimed(number), 0, -1).Result()
	default:
		return nil, nil
	}
	if err != nil {
		return nil, connect.MapError(ctx, err)
	}
	return s.readLaneJobs(ctx, members, lane)
}

// listLane reads the jobs of one lane that come after a place, in order, merged with the unordered ones.
func (s *Jobs) listLane(ctx context.Context, f *store.Filter, from place, unordered []listedJob) (part jobPage, err error) {
	_, number, _ := strings.Cut(from.lane, "\x00")
	least, greatest := window(f)
	if f.State == job.Scheduled || f.State == job.Ready {
		if part, err = s.readPage(ctx, s.Keys.Due(number), least, greatest, min(f.Limit+1, listChunk), from); err != nil {
			return jobPage{}, err
		}
	}
	for i := range unordered {
		// Beyond the last of the due ones there may be due ones that were not read.
		if (from.score == "" || compare(&unordered[i], &listedJob{place: from}) > 0) &&
			(!part.more || compare(&unordered[i], &listedJob{place: part.to}) <= 0) {
			part.jobs = append(part.jobs, unordered[i])
			part.read++
		}
	}
	slices.SortFunc(part.jobs, func(a, b listedJob) int { return compare(&a, &b) })
	return part, nil
}

func compare(a, b *listedJob) int {
	return cmp.Or(cmp.Compare(script.Num(a.score), script.Num(b.score)), cmp.Compare(a.jobKey, b.jobKey))
}

// matches reports whether a job matches the filter.
func matches(f *store.Filter, p *listedJob) bool {
	j := &p.job
	if j.State != f.State || (f.Lane != "" && j.Lane != f.Lane) {
		return false
	}
	if (f.Reason != "" && j.Reason != f.Reason) || (f.Status != 0 && j.Status != f.Status) {
		return false
	}
	if f.Label != "" {
		if value, ok := j.Labels[f.Label]; !ok || value != f.Value {
			return false
		}
	}
	when := j.DueAt
	if j.State.Ended() {
		when = j.FinishedAt
	}
	return (f.After.IsZero() || !when.Before(f.After)) && (f.Before.IsZero() || when.Before(f.Before))
}

// wasClockAhead reports whether Redis's clock was set back: jobs that were due before may be in ready lists although their due time
// is in the future now.
func (s *Jobs) wasClockAhead(ctx context.Context) (bool, error) {
	ahead, err := s.Client.HGet(ctx, s.Keys.Clock, "ahead").Result()
	if connect.IsNil(err) {
		return false, nil
	}
	if err != nil {
		return false, connect.MapError(ctx, err)
	}
	server, err := s.Client.Node(ctx, s.Keys.Clock) // a command without a key would go to any server of a cluster
	if err != nil {
		return false, connect.MapError(ctx, err)
	}
	now, err := server.Time(ctx).Result()
	if err != nil {
		return false, connect.MapError(ctx, err)
	}
	return layout.Int(ahead) > now.UnixMilli(), nil
}
