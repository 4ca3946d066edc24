package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// ledger records what the store has done, what receivers have got and what clients were told, and checks the promises.
type ledger struct {
	w *world

	mu      sync.Mutex
	entries map[job.Ref]*entry
	outbox  map[job.Ref]bool // jobs that settlements and alarms have written to the outbox
	starts  map[job.Queue][]time.Time
	tokens  map[store.Token]bool // of settlements
	count   map[string]int64     // registrations by topic
	changes map[string]int64     // of jobs, by actor
	gone    map[string]int64     // the same of jobs that were removed since
	broken  []string
}

// entry is what the ledger knows of a job.
type entry struct {
	spec      job.Spec
	number    int         // in the order of registration
	token     store.Token // of its registration
	createdAt time.Time
	isTold    bool // the client knows that it is registered

	version    int64
	generation int
	body       []byte
	// due is by the store's clock, waits by the one that no step moves: no claim comes before both.
	due, waits time.Time
	firstDue   time.Time
	attempts   int // ended, as Progress.Attempts
	failed     int
	lost       int // in a row

	lease   store.Token // the last one; see isLeased
	settled []store.Token
	open    bool // the last lease is not settled
	holder  *process
	until   time.Time
	claimed []byte // the body
	inLease int    // starts under the lease
	sending bool   // an attempt is under way

	results map[int]policy.Result // of attempts, by number
	starts  int
	claims  int // at an instant
	at      time.Time

	actors []string // of changes

	state        job.State // empty: unfinished
	reason       policy.Reason
	isMarked     bool // a cancellation was requested while it ran
	askedCancel  bool
	isConfirmed  bool // a consumer was told that it is delivered
	isPurged     bool
	wasDelivered bool
}

func newLedger(w *world) *ledger {
	return &ledger{
		w: w, entries: make(map[job.Ref]*entry), outbox: make(map[job.Ref]bool), starts: make(map[job.Queue][]time.Time),
		tokens: make(map[store.Token]bool), count: make(map[string]int64), changes: make(map[string]int64), gone: make(map[string]int64),
	}
}

// maxClaims is how often a job may be claimed at an instant.
const maxClaims = 50

// breach records a broken promise.
func (l *ledger) breach(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.broken = append(l.broken, text)
	l.w.story.addBreach(text)
}

// isInternal reports whether a job is Ringback's own, with steps in place of attempts.
func (e *entry) isInternal() bool {
	return e.spec.Topic == job.WorkTopic || e.spec.Topic == job.ScheduleTopic
}

// get returns the entry of a job that the store returned.
func (l *ledger) get(ref job.Ref, what string) *entry {
	e := l.entries[ref]
	if e == nil {
		l.breach("%s: %s was never registered", ref.ID, what)
		e = &entry{results: make(map[int]policy.Result)}
		l.entries[ref] = e
	}
	return e
}

func (l *ledger) inserted(token store.Token, jobs []store.NewJob, results []store.InsertResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range results {
		ref := jobs[i].Ref()
		if r.Outcome != store.Created {
			continue
		}
		if e := l.entries[ref]; e != nil {
			if e.token != token {
				l.breach("%s: registered twice", ref.ID)
			}
			continue
		}
		e := &entry{
			spec: r.Job.Spec, number: len(l.entries), token: token, createdAt: r.Job.CreatedAt, version: r.Job.Version,
			body: r.Job.Body, due: r.Job.DueAt, firstDue: r.Job.FirstDueAt, results: make(map[int]policy.Result),
		}
		if e.body == nil {
			e.body = jobs[i].Body
		}
		e.waits = time.Now().Add(r.Job.DueAt.Sub(l.w.clock()))
		if wanted := l.w.clock().Add(jobs[i].Delay); jobs[i].RunAt.IsZero() && e.due.Before(job.Millis(wanted)) {
			l.breach("%s: due at %v, before its delay of %v", ref.ID, e.due, jobs[i].Delay)
		}
		if (e.spec.Topic == job.CallbackTopic || jobs[i].Kind == job.KindSchedule && !e.isInternal()) && !l.outbox[ref] {
			l.breach("%s: in %s, but in no outbox", ref.ID, e.spec.Topic)
		}
		l.entries[ref] = e
		l.count[e.spec.Topic]++
	}
}

// told notes that a client was told that its job is registered.
func (l *ledger) told(ref job.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.get(ref, "a job that a client was told of").isTold = true
}

// confirmed notes that a consumer was told that a job is delivered.
func (l *ledger) confirmed(ref job.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.get(ref, "a job that a consumer reported")
	if e.isConfirmed = true; e.state != job.Delivered && e.generation == 0 {
		l.breach("%s: a consumer was told that it is delivered, and it is %q", ref.ID, e.state)
	}
}

// isLeased reports whether a lease holds a job now.
func (e *entry) isLeased() bool { return e.open && time.Now().Before(e.until) }

// lose ends the lease of a job that was not settled in time.
func (e *entry) lose() {
	if !e.open {
		return
	}
	e.open = false
	e.attempts++
	if e.lost++; e.lost > policy.FreeLosses {
		e.failed++
	}
	e.due, e.waits = time.Time{}, time.Time{}
}

// stepping notes that the clock steps: what is due stays due.
func (l *ledger) stepping() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.w.clock()
	for _, e := range l.entries {
		if !now.Before(e.due) {
			e.due = time.Time{}
		}
	}
}

// loseAll ends all leases, as a restart of the engine does.
func (l *ledger) loseAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		if e.open {
			e.until = time.Now()
		}
	}
}

func (l *ledger) claimed(p *process, jobs []store.ClaimedJob, forAttempts bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range jobs {
		j := &jobs[i]
		e := l.get(j.Ref(), "a claimed job")
		if e.lease == j.Lease && e.open {
			continue // a repeat
		}
		switch now := time.Now(); {
		case e.state != "":
			l.breach("%s: claimed by %s, but it is %s", j.ID, p.name, e.state)
		case e.isLeased():
			l.breach("%s: claimed by %s, while %s holds it for another %v", j.ID, p.name, e.holder.name, e.until.Sub(now))
		case e.lease == j.Lease:
			l.breach("%s: claimed again under a token that has settled it", j.ID)
		}
		if e.open {
			e.lose()
		}
		if now := time.Now(); !now.Equal(e.at) {
			e.at, e.claims = now, 0
		}
		if e.claims++; e.claims == maxClaims {
			l.breach("%s: was claimed %d times at an instant", j.ID, e.claims)
			p.cut(time.Minute) // so that time goes on
		}
		if !e.isInternal() {
			if j.Attempts != e.attempts || j.FailedAttempts != e.failed {
				l.breach("%s: claimed with %d attempts, %d of them failed; the ledger has %d and %d", j.ID, j.Attempts, j.FailedAttempts, e.attempts, e.failed)
			}
			if !bytes.Equal(j.Body, e.body) {
				l.breach("%s: claimed with the body %q, edited to %q", j.ID, j.Body, e.body)
			}
		}
		if now := l.w.clock(); forAttempts && (now.Before(e.due) && time.Now().Before(e.waits)) {
			l.breach("%s: claimed at %v, due at %v, which the store says is %v", j.ID, now, e.due, j.DueAt)
		}
		e.createdAt = j.CreatedAt // a step of the clock may move it
		e.lease, e.open, e.holder, e.until, e.claimed, e.inLease = j.Lease, true, p, time.Now().Add(j.LeaseFor-time.Millisecond), j.Body, 0
		if e.spec.Topic == topicOrdered && forAttempts {
			l.checkOrder(j.ID, e)
		}
	}
}

// checkOrder checks that no job before another one of an ordered lane is unfinished.
func (l *ledger) checkOrder(id string, e *entry) {
	for _, other := range l.entries {
		if other.spec.Queue != e.spec.Queue || other == e || other.state != "" {
			continue
		}
		if other.number < e.number && !other.firstDue.After(l.w.clock()) && !other.mayBeCancelled() {
			l.breach("%s: claimed before %s, which was registered before it in an ordered lane", id, other.spec.ID)
		}
		if other.isLeased() {
			l.breach("%s: claimed beside %s in an ordered lane", id, other.spec.ID)
		}
	}
}

// mayBeCancelled reports whether the end of a lease has cancelled the job, which the ledger does not see.
func (e *entry) mayBeCancelled() bool { return e.isMarked && !e.isLeased() }

func (l *ledger) settle(p *process, token store.Token, items []store.Settlement, errs []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tokens[token] {
		return // a repeat
	}
	l.tokens[token] = true
	for i := range items {
		s := &items[i]
		if errs[i] != nil && !(s.Extend > 0 && errors.Is(errs[i], store.ErrCancelRequested)) {
			continue
		}
		e := l.get(s.Ref, "a settled job")
		switch {
		case slices.Contains(e.settled, s.Lease): // a repeat
			continue
		case s.Lease != e.lease || !e.open:
			l.breach("%s: a settlement of %s was accepted, but its lease is over", s.Ref.ID, p.name)
			continue
		case s.Extend > 0:
			if until := time.Now().Add(s.Extend - time.Millisecond); until.After(e.until) {
				e.until = until
			}
			continue
		}
		e.open = false
		e.settled = append(e.settled, s.Lease)
		l.w.story.add("%s settles %s: %s %s wait %v lane %v %q attempt %q", p.name, s.Ref.ID, s.Verdict.Kind, s.Verdict.Reason, s.Verdict.Wait, s.Verdict.LaneWait, s.Verdict.Note, s.Attempt.Kind)
		if s.Body != nil {
			e.body = s.Body
		}
		if !e.isInternal() {
			l.judge(e, s)
		}
		l.end(e, s)
	}
}

// judge checks the verdict of a settlement against what the receiver answered.
func (l *ledger) judge(e *entry, s *store.Settlement) {
	a := &s.Attempt
	if a.Kind != "" && a.N != e.attempts+1 {
		l.breach("%s: attempt %d is stored after %d", s.Ref.ID, a.N, e.attempts)
	}
	result, isKnown := e.results[a.N]
	if a.Kind == job.KindAttempt {
		if !isKnown && s.Verdict.Kind == policy.Delivered {
			l.breach("%s: delivered by attempt %d, which nobody has seen", s.Ref.ID, a.N)
		}
		if isKnown && result.Status != a.Status {
			l.breach("%s: attempt %d got %d and is stored with %d", s.Ref.ID, a.N, result.Status, a.Status)
		}
		e.attempts, e.lost = e.attempts+1, 0
		if s.Verdict.Kind != policy.Delivered {
			e.failed++
		}
	}
	isGood := result.Accepted || result.Status/100 == 2
	if isKnown && isGood != (s.Verdict.Kind == policy.Delivered) && a.Kind == job.KindAttempt {
		l.breach("%s: attempt %d got %+v and is %s", s.Ref.ID, a.N, result, s.Verdict.Kind)
	}
	if a.Kind == job.KindAttempt && s.Verdict.Kind == policy.Again && pushes(e.spec.Topic) {
		if rung := ladderOf(&e.spec).Rung(e.failed); s.Verdict.Wait < max(rung, result.RetryAfter) {
			l.breach("%s: waits %v after failure %d: its rung is %v, the receiver asked for %v", s.Ref.ID, s.Verdict.Wait, e.failed, rung, result.RetryAfter)
		}
	}
	if s.Verdict.Reason == policy.ReasonExhausted && e.failed <= retriesOf(&e.spec) {
		l.breach("%s: exhausted after %d failures, with %d retries", s.Ref.ID, e.failed, retriesOf(&e.spec))
	}
}

// end moves a job as its settlement says.
func (l *ledger) end(e *entry, s *store.Settlement) {
	kind := s.Verdict.Kind
	if e.isMarked && kind != policy.Delivered {
		e.state = job.Cancelled
		return
	}
	switch kind {
	case policy.Delivered:
		e.state, e.wasDelivered = job.Delivered, true
	case policy.Dead:
		e.state, e.reason = job.Dead, s.Verdict.Reason
	default:
		e.due = job.Millis(l.w.clock()).Add(s.Verdict.Wait).Truncate(time.Millisecond)
		e.waits = time.Now().Add(s.Verdict.Wait - time.Millisecond)
	}
	wanted := e.spec.OnDead
	if e.state == job.Delivered {
		wanted = e.spec.OnDelivered
	}
	if callback := (job.Ref{Namespace: s.Ref.Namespace, ID: e.callbackID()}); e.state != "" && wanted != nil {
		if !slices.ContainsFunc(s.Outbox, func(n store.NewJob) bool { return n.Ref() == callback }) {
			l.breach("%s: is %s without its callback %s", s.Ref.ID, e.state, callback.ID)
		}
	}
	for i := range s.Outbox {
		if ref := s.Outbox[i].Ref(); !l.outbox[ref] {
			l.outbox[ref] = true
		} else if s.Outbox[i].Kind == job.KindCallback {
			l.breach("%s: a second callback %s", s.Ref.ID, ref.ID)
		}
	}
}

func (e *entry) callbackID() string {
	return job.CallbackID(job.Job{Spec: e.spec, Progress: job.Progress{CreatedAt: e.createdAt, Generation: e.generation}})
}

func (l *ledger) alarmed(alarm store.Alarm) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range alarm.Outbox {
		l.outbox[alarm.Outbox[i].Ref()] = true
	}
}

// isRepeat reports whether a change is that of an earlier call, and counts it if not. Nobody who has a name changes a job twice:
// clients have none here.
func (l *ledger) isRepeat(e *entry, version int64, actor string) bool {
	if version <= e.version {
		return true
	}
	e.version = version
	l.changes[actor]++
	if actor != "" && slices.Contains(e.actors, actor) {
		l.breach("%s: changed twice by %s", e.spec.ID, actor)
	}
	e.actors = append(e.actors, actor)
	return false
}

func (l *ledger) replaced(ref job.Ref, r store.Replacement, j job.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.get(ref, "an edited job")
	if l.isRepeat(e, j.Version, r.Actor) {
		return
	}
	if e.isLeased() || e.state != "" {
		l.breach("%s: edited while %s", ref.ID, j.State)
	}
	e.lose()
	if r.Spec != nil {
		e.body = r.Spec.Body
	}
	if r.Due != nil {
		e.due, e.waits = j.DueAt, time.Now().Add(j.DueAt.Sub(l.w.clock()))
	}
	e.firstDue = j.FirstDueAt
}

func (l *ledger) cancelled(ref job.Ref, cancellation store.Cancellation, j job.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.get(ref, "a cancelled job")
	e.askedCancel = true
	if l.isRepeat(e, j.Version, cancellation.Actor) {
		return
	}
	switch {
	case j.State != job.Cancelled:
		e.isMarked = true
	case e.isLeased() || e.state != "":
		l.breach("%s: cancelled while it was held, or had ended", ref.ID)
	default:
		e.lose()
		e.state = job.Cancelled
	}
}

func (l *ledger) revived(items []store.Revival, results []store.ReviveResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range results {
		if r.Err != nil {
			continue
		}
		e := l.get(items[i].Ref, "a revived job")
		if l.isRepeat(e, r.Job.Version, items[i].Actor) {
			continue
		}
		if e.state == "" && !e.mayBeCancelled() {
			l.breach("%s: revived before it ended", items[i].Ref.ID)
		}
		e.lose()
		e.state, e.reason, e.isMarked, e.failed, e.lost, e.isConfirmed, e.askedCancel = "", "", false, 0, 0, false, false
		e.generation, e.due, e.firstDue = r.Job.Generation, r.Job.DueAt, r.Job.FirstDueAt
		e.waits = time.Now().Add(r.Job.DueAt.Sub(l.w.clock()))
		if r.Job.Attempts != e.attempts {
			l.breach("%s: revived with %d attempts, the ledger has %d", items[i].Ref.ID, r.Job.Attempts, e.attempts)
		}
	}
}

func (l *ledger) purged(items []store.Removal, errs []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, err := range errs {
		if err != nil {
			continue
		}
		e := l.get(items[i].Ref, "a removed job")
		if e.state == "" && !e.mayBeCancelled() {
			l.breach("%s: removed before it ended", items[i].Ref.ID)
		}
		e.isPurged = true
		for _, actor := range e.actors {
			l.gone[actor]++
		}
	}
}

// started notes that a receiver, a handler or a consumer gets an attempt, and returns how often the job was sent.
func (l *ledger) started(p *process, ref job.Ref, attempt int, body []byte) (n int) {
	l.w.story.add("%s sends %s, attempt %d", p.name, ref.ID, attempt)
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.get(ref, "a job that was sent")
	e.starts++
	if e.spec.Topic == topicPulled {
		return e.starts // a consumer may have got the lease late
	}
	if e.inLease++; e.inLease > 1 {
		l.breach("%s: sent %d times under one lease", ref.ID, e.inLease)
	}
	switch {
	case !e.isLeased() || e.holder != p:
		l.breach("%s: sent by %s, which has no lease", ref.ID, p.name)
	case attempt != e.attempts+1:
		l.breach("%s: sent as attempt %d after %d", ref.ID, attempt, e.attempts)
	case !bytes.Equal(body, e.claimed):
		l.breach("%s: sent with the body %q, claimed with %q", ref.ID, body, e.claimed)
	}
	e.sending = true
	l.start(e.spec.Queue)
	if limit := policies[e.spec.Topic].LaneConcurrency; limit > 0 && e.spec.Lane == laneOfLimit {
		if n := l.sending(e.spec.Queue); n > limit {
			l.breach("%s: %d attempts of its lane are under way, allowed are %d", ref.ID, n, limit)
		}
	}
	return e.starts
}

// sending counts the attempts of a lane that are under way.
func (l *ledger) sending(q job.Queue) (n int) {
	for _, e := range l.entries {
		if e.spec.Queue == q && e.sending && e.isLeased() && e.holder.life.Err() == nil {
			n++
		}
	}
	return n
}

// start counts a start of a lane and its topic.
func (l *ledger) start(q job.Queue) {
	now := time.Now()
	for _, limit := range l.w.rates(q) {
		starts := l.starts[limit.queue]
		starts = append(slices.DeleteFunc(starts, func(at time.Time) bool { return now.Sub(at) >= limit.rate.Per }), now)
		if l.starts[limit.queue] = starts; len(starts) > limit.rate.Starts {
			l.breach("%s: %d starts within %v, allowed are %d", limit.queue, len(starts), limit.rate.Per, limit.rate.Starts)
		}
	}
}

// answered notes the answer of a receiver as the process got it.
func (l *ledger) answered(p *process, ref job.Ref, attempt int, result policy.Result) {
	l.w.story.add("%s: %s, attempt %d: status %d %s accepted %t, asks for %v", p.name, ref.ID, attempt, result.Status, result.Class, result.Accepted, result.RetryAfter)
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.get(ref, "a job that was answered")
	e.sending = false
	if p.life.Err() == nil && (e.results[attempt].Status/100 != 2 && !e.results[attempt].Accepted) {
		e.results[attempt] = result
	}
}

// checkEnd checks each job when all have ended.
func (l *ledger) checkEnd(ctx context.Context, st store.Store) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ref := range l.outbox {
		if l.entries[ref] == nil {
			l.breach("%s: was in the outbox and is not registered", ref.ID)
		}
	}
	for ref, e := range l.entries {
		if e.isInternal() {
			continue
		}
		j, err := get(ctx, st, ref)
		switch {
		case e.isPurged && errors.Is(err, store.ErrNotFound):
		case err != nil:
			l.breach("%s: is lost: %v", ref.ID, err)
		default:
			l.checkJob(e, &j)
		}
	}
}

// get finds a job on any shard.
func get(ctx context.Context, st store.Store, ref job.Ref) (j job.Job, err error) {
	for _, shard := range st.Shards() {
		if j, err = shard.Get(ctx, ref); !errors.Is(err, store.ErrNotFound) {
			return j, err
		}
	}
	return j, err
}

// checkJob checks a job that has ended.
func (l *ledger) checkJob(e *entry, j *job.Job) {
	id := j.ID
	if e.open && !e.isLeased() {
		e.lose()
	}
	switch {
	case !j.State.Ended():
		l.breach("%s: is %s at the end, due at %v", id, j.State, j.DueAt)
		return
	case e.state == "" && j.State == job.Cancelled && e.isMarked: // at the end of its lease
	case j.State != e.state || j.Reason != e.reason && j.State == job.Dead:
		l.breach("%s: is %s %s, by the ledger %s %s", id, j.State, j.Reason, e.state, e.reason)
	}
	if j.State == job.Cancelled && !e.askedCancel {
		l.breach("%s: is cancelled, and nobody asked for it", id)
	}
	if e.isConfirmed && j.State != job.Delivered {
		l.breach("%s: a consumer was told that it is delivered, and it is %s", id, j.State)
	}
	if j.Attempts != e.attempts || j.Generation != e.generation {
		l.breach("%s: has %d attempts in generation %d, by the ledger %d in %d", id, j.Attempts, j.Generation, e.attempts, e.generation)
	}
	counted := 0
	for i := range j.History {
		if j.History[i].Kind.Counts() {
			counted++
		}
	}
	if counted != min(j.Attempts, job.MaxAttempts) {
		l.breach("%s: has %d attempts, %d of them in its history", id, j.Attempts, counted)
	}
}
