package work

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

const (
	// maxUnfinished bounds the unfinished Works of a namespace, approximately: Works that are created at once are not
	// counted.
	maxUnfinished = 100
	// fullRetryAfter is when to try again after that.
	fullRetryAfter = time.Minute
)

// queueOf returns the queue of a namespace's bulk work.
func queueOf(namespace string) job.Queue {
	return job.Queue{Namespace: namespace, Topic: job.WorkTopic, Lane: job.DefaultLane}
}

func refOf(namespace, id string) job.Ref {
	return job.Ref{Namespace: namespace, ID: job.WorkIDPrefix + id}
}

// actorOf returns the actor in the events of jobs that a Work has changed, by the id of its job.
func actorOf(id string) string { return "work:" + id[len(job.WorkIDPrefix):] }

// Jobs is the part of the store that holds bulk work, each a job.
type Jobs interface {
	internaljobs.Jobs
	Get(ctx context.Context, ref job.Ref) (job.Job, error)
	Insert(ctx context.Context, jobs []store.NewJob) []store.RoutedResult
	Cancel(ctx context.Context, ref job.Ref, cancellation store.Cancellation) (job.Job, error)
	TopicStats(ctx context.Context, filter store.StatsFilter) ([]store.TopicStats, error)
	ShardOf(q job.Queue) int
}

// Create starts bulk work. Error: *job.QuotaError.
func Create(ctx context.Context, jobs Jobs, namespace string, o store.WorkOrder) (store.Work, error) {
	rows, err := jobs.TopicStats(ctx, store.StatsFilter{Namespace: namespace, Topics: []string{job.WorkTopic}})
	if err != nil {
		return store.Work{}, err
	}
	for _, row := range rows {
		if row.Scheduled+row.Ready+row.Running >= maxUnfinished {
			return store.Work{}, &job.QuotaError{
				Quota: "unfinished work", Limit: strconv.Itoa(maxUnfinished),
				RetryAfter: fullRetryAfter,
			}
		}
	}
	o.IDCount = len(o.IDs)
	p := progress{status: status{WorkOrder: o}, Left: o.IDs}
	if o.IDCount > 0 && o.Action != store.WorkReplay { // each event has some jobs
		p.Total, p.Counted = int64(o.IDCount), true
	}
	body, err := json.Marshal(&p)
	if err != nil {
		return store.Work{}, err
	}
	q := queueOf(namespace)
	id := job.WorkIDPrefix + job.NewID(time.Now(), jobs.ShardOf(q))
	inserted := jobs.Insert(ctx, []store.NewJob{{New: job.New{Spec: job.Spec{
		ID: id, Queue: q, Kind: job.KindWork, CreatedBy: o.Actor, BodyKind: job.BodyJSON, Body: body,
	}}}})[0]
	if inserted.Err != nil {
		return store.Work{}, inserted.Err
	}
	return decode(&inserted.Job), nil
}

// Get returns bulk work. Error: store.ErrNotFound.
func Get(ctx context.Context, jobs Jobs, namespace, id string) (store.Work, error) {
	found, err := jobs.Get(ctx, refOf(namespace, id))
	if err != nil {
		return store.Work{}, err
	}
	return decode(&found), nil
}

// Stop ends bulk work after the step in progress. Jobs that it has changed stay changed. Stopping ended work changes
// nothing.
func Stop(ctx context.Context, jobs Jobs, namespace, id, actor string) (store.Work, error) {
	found, err := jobs.Cancel(ctx, refOf(namespace, id), store.Cancellation{Actor: actor})
	if _, ended := errors.AsType[*store.StateError](err); ended {
		return Get(ctx, jobs, namespace, id)
	}
	if err != nil {
		return store.Work{}, err
	}
	return decode(&found), nil
}

// List returns a page of the bulk work that shown selects: first what runs, then what has ended, the newest first. It
// is full unless it is the last, or took long.
func List(
	ctx context.Context, jobs Jobs, filter store.Filter, shown func(*store.Work) bool,
) ([]store.Work, store.Page, error) {
	filter.Topic, filter.Kind = job.WorkTopic, ""
	return internaljobs.List(ctx, jobs, filter, decode, shown)
}

// decode returns the Work that a job does. One whose body cannot be read has the state store.WorkFailed and no action.
func decode(j *job.Job) store.Work {
	w := store.Work{
		ID: j.ID[len(job.WorkIDPrefix):], State: store.WorkRunning, CreatedAt: j.CreatedAt,
		EndedAt: j.FinishedAt, Total: -1,
	}
	var s status
	if err := json.Unmarshal(j.Body, &s); err != nil {
		w.State = store.WorkFailed
		return w
	}
	w.WorkOrder, w.WorkCounts, w.Listed = s.WorkOrder, s.WorkCounts, s.Listed
	switch {
	case s.Listed:
		w.Total = s.Matched
	case s.Counted:
		w.Total = s.Total
	}
	switch j.State {
	case job.Delivered:
		w.State = store.WorkDone
	case job.Dead, job.Cancelled:
		w.State = store.WorkStopped
	default:
		w.ETA, w.WaitingFor = s.eta(j.CreatedAt, w.Total), s.WaitingFor
	}
	return w
}

// eta estimates the end: under a rate the last start, else by the jobs that were treated until the last step. Zero: it
// is not known.
func (s *status) eta(createdAt time.Time, total int64) time.Time {
	if total < 0 {
		return time.Time{}
	}
	if s.limited() {
		return s.lastStart(total)
	}
	treated, took := s.Treated(), s.StepAt.Sub(createdAt)
	if treated == 0 || took <= 0 {
		return time.Time{}
	}
	return job.Millis(s.StepAt.Add(time.Duration(float64(took) / float64(treated) * float64(max(0, total-treated)))))
}

// lastStart estimates the last start, as if no more jobs were skipped. The starts that are not planned yet follow the
// last planned one at the rate, or at the pace of those before if steps cannot keep up with the rate. Zero: it is not
// known.
func (s *status) lastStart(total int64) time.Time {
	if s.LastStart == 0 {
		return time.Time{}
	}
	last := time.UnixMilli(s.LastStart).UTC()
	if s.Listed {
		return last
	}
	interval, known := s.interval()
	if !known {
		return time.Time{}
	}
	if s.Matched > 1 {
		interval = max(interval, float64(time.Duration(s.LastStart-s.FirstStart)*time.Millisecond)/float64(s.Matched-1))
	}
	return job.Millis(last.Add(time.Duration(interval * float64(max(0, total-s.Matched)))))
}

// interval returns the nanoseconds from start to start that the rates allow. With a lane rate that is known of a single
// lane only: how the jobs that are not planned yet are spread over lanes is not counted.
func (s *status) interval() (nanoseconds float64, known bool) {
	if s.Rate.Limited() {
		nanoseconds = float64(s.Rate.Per) / float64(s.Rate.Starts)
	}
	if !s.LaneRate.Limited() {
		return nanoseconds, true
	}
	oneLane := s.IDCount == 0 && s.Filter.Topic != "" && s.Filter.Lane != ""
	return max(nanoseconds, float64(s.LaneRate.Per)/float64(s.LaneRate.Starts)), oneLane
}
