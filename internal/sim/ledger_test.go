package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
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

	mu        sync.Mutex
	entries   map[job.Ref]*entry
	outbox    map[job.Ref]bool // jobs that settlements and alarms have written to the outbox
	starts    map[job.Queue][]time.Time
	answers   map[string]answer // by method and token
	topics    map[string][]reign[policy.Topic]
	lanes     map[job.Queue][]reign[policy.Lane]
	paused    map[job.Queue]time.Time // until when a lane has a cooldown
	accounts  map[string]*account     // of schedules, by internal job
	schedules map[string]*account     // the newest, by name
	open      map[job.Queue]bool      // breakers
	raised    map[string]bool         // alarms of topics
	stepped   time.Time               // when the clock last did
	peak      time.Time               // the latest that the clock showed before a step
	reigned   time.Time               // when the settings of a topic last changed
	count     map[string]int64        // registrations by topic
	changes   map[string]int64        // of jobs, by actor
	gone      map[string]int64        // the same of jobs that were removed since
	carried   time.Time               // a carrier's round, last
	isLate    bool                    // the call under way is made when its caller no longer waits for it
	breaking  sync.Mutex              // of broken: calls of many goroutines may break a promise
	broken    []breach
}

// breach is a broken promise. The kind is the same for all jobs.
type breach struct{ kind, text string }

// answer is what the store has answered to a call with a token.
type answer struct {
	at   time.Time
	text string
}

// entry is what the ledger knows of a job.
type entry struct {
	spec      job.Spec
	number    int         // in the order of registration
	token     store.Token // of its registration
	createdAt time.Time
	first     []byte // the body as it was registered
	// registered is when it was, and moved is when its place or its state last changed.
	registered, moved time.Time

	version    int64
	generation int
	body       []byte
	// due is by the store's clock, waits by the one that no step moves: no claim comes before both.
	due, waits time.Time
	firstDue   time.Time
	attempts   int // ended, as Progress.Attempts
	failed     int
	lost       int // in a row

	lease    store.Token // the last one; see isLeased
	since    time.Time   // it was claimed
	isPulled bool        // by a consumer, which may forget it
	isEnding bool        // it was claimed to be ended
	isSteady bool        // no settings of topics had changed shortly before
	settled  []store.Token
	open     bool // the last lease is not settled
	holder   *process
	until    time.Time
	claimed  []byte    // the body
	inLease  int       // starts under the lease
	expires  time.Time // no attempt starts later; zero: never
	sending  bool      // an attempt is under way

	results map[int]policy.Result // of attempts, by number
	leases  int                   // of consumers
	claims  int                   // at an instant
	at      time.Time

	actors []string // of changes

	state        job.State // empty: unfinished
	reason       policy.Reason
	isMarked     bool // a cancellation was requested while it ran
	askedCancel  bool // of this generation
	wasCancelled bool
	isConfirmed  bool // a consumer was told that it is delivered
	isPurged     bool
	endedAt      time.Time
	isIdle       bool // of a schedule that has ended
	// plan are the ids of the jobs that the next step of bulk work treats, planned those of all steps.
	plan, planned map[string]bool
}

func newLedger(w *world) *ledger {
	return &ledger{
		w: w, entries: make(map[job.Ref]*entry), outbox: make(map[job.Ref]bool), answers: make(map[string]answer),
		topics: make(map[string][]reign[policy.Topic]), lanes: make(map[job.Queue][]reign[policy.Lane]),
		starts: make(map[job.Queue][]time.Time), paused: make(map[job.Queue]time.Time), open: make(map[job.Queue]bool),
		raised: make(map[string]bool), count: make(map[string]int64),
		changes: make(map[string]int64), gone: make(map[string]int64),
		accounts: make(map[string]*account), schedules: make(map[string]*account),
	}
}

// maxClaims is how often a job may be claimed at an instant.
const maxClaims = 50

// breach records a broken promise.
func (l *ledger) breach(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.breaking.Lock()
	l.broken = append(l.broken, breach{format, text})
	l.breaking.Unlock()
	l.w.story.addBreach(text)
}

// isRepeated reports whether a call was made before under its token, and checks that it has the answer that it had.
func (l *ledger) isRepeated(method string, token store.Token, parts ...any) bool {
	key, text := method+" "+string(token), fmt.Sprint(parts...)
	before, known := l.answers[key]
	age := time.Since(before.at)
	if known && age < store.TokenTTL-time.Second && text != before.text {
		l.breach("%s: answered %s, and after %v under the same token %s", method, before.text, age, text)
	}
	if known && age < store.TokenTTL {
		return true
	}
	l.answers[key] = answer{time.Now(), text}
	return false
}

// repeats notes the answer of a call that changes nothing that the ledger knows.
func (l *ledger) repeats(method string, token store.Token, parts ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isRepeated(method, token, parts...)
}

// isInternal reports whether a job is Ringback's own, with steps in place of attempts.
func (e *entry) isInternal() bool {
	return store.IsInternal(e.spec.Topic)
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
	outcomes := make([]store.Outcome, len(results))
	for i := range results {
		outcomes[i] = results[i].Outcome
	}
	if len(results) > 0 && l.isRepeated("Insert", token, outcomes) {
		return
	}
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
			registered: time.Now(), moved: time.Now(), plan: make(map[string]bool), planned: make(map[string]bool),
		}
		if !r.Job.ExpiresAt.IsZero() {
			e.expires = time.Now().Add(r.Job.ExpiresAt.Sub(l.w.clock()))
		}
		if e.body == nil {
			e.body = jobs[i].Body
		}
		e.first = e.body
		e.waits = time.Now().Add(r.Job.DueAt.Sub(l.w.clock()))
		if wanted := l.w.clock().Add(jobs[i].Delay); jobs[i].RunAt.IsZero() && e.due.Before(job.Millis(wanted)) {
			l.breach("%s: due at %v, before its delay of %v", ref.ID, e.due, jobs[i].Delay)
		}
		isTick := jobs[i].Kind == job.KindSchedule && !e.isInternal()
		isMade := isTick || e.spec.Topic == job.CallbackTopic || job.EventOf(ref.ID, e.spec.Queue) != ""
		if isMade && !l.outbox[ref] {
			l.breach("%s: in %s, but in no outbox", ref.ID, e.spec.Topic)
		}
		l.w.story.add("%s is registered, due at %v", ref.ID, e.due)
		l.entries[ref] = e
		l.count[e.spec.Topic]++
	}
}

// told notes what a client was told of its job: that it is registered, or that another one has its id.
func (l *ledger) told(n *job.New, refused error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, isTaken := errors.AsType[*job.TakenError](refused)
	if refused != nil && !isTaken {
		return
	}
	e := l.get(n.Ref(), "a job that a client was told of")
	switch isSame := bytes.Equal(n.Body, e.first); {
	case isTaken && isSame && !e.wasCancelled:
		l.breach("%s: a client was told that its id is taken, and it is its own", n.ID)
	case !isTaken && !isSame:
		l.breach("%s: a client was told that it is registered with %q, and it has %q", n.ID, n.Body, e.first)
	}
}

// waited notes what a client was told that has waited for the end of a job since a time.
func (l *ledger) waited(p *process, j *job.Job, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const soon = 3 * time.Second
	e := l.get(j.Ref(), "a job for whose end a client has waited")
	if e.endedAt.After(since) {
		since = e.endedAt
	}
	switch {
	case e.generation != j.Generation:
	case j.State.Ended() && e.state != j.State && (j.State != job.Cancelled || !e.isMarked):
		l.breach("%s: a client was told that it is %s, and it is %q", j.ID, j.State, e.state)
	case e.state != "" && time.Since(since) > soon && p.isCalmSince(since.Add(-longest)):
		l.breach("%s: a client has waited for its end for %v after it", j.ID, time.Since(since))
	}
}

// confirmed notes that a consumer was told that a job, of the generation that it leased, is delivered.
func (l *ledger) confirmed(ref job.Ref, generation int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.get(ref, "a job that a consumer reported")
	if e.generation != generation { // it was revived since
		return
	}
	if e.isConfirmed = true; e.state != job.Delivered {
		l.breach("%s: a consumer was told that it is delivered, and it is %q", ref.ID, e.state)
	}
}

// isLeased reports whether a lease holds a job now.
func (e *entry) isLeased() bool { return e.open && time.Now().Before(e.until) }

// lose ends the lease of a job that was not settled in time.
func (l *ledger) lose(e *entry) {
	if !e.open {
		return
	}
	if !e.isPulled && e.holder.isFastSince(e.since) {
		l.breach("%s: %s has lost its lease, though nothing has held it up since", e.spec.ID, e.holder.name)
	}
	l.w.story.add("%s: the lease of %s is lost", e.spec.ID, e.holder.name)
	e.open, e.moved = false, time.Now()
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
	l.stepped = time.Now()
	now := l.w.clock()
	l.peak = latest(l.peak, now)
	for _, e := range l.entries {
		if !now.Before(e.due) {
			e.due = time.Time{}
		}
	}
}

// loseAll ends all leases, as a restart of the engine does. If no round of a carrier has seen the last step of the
// clock, the engine takes it for time that has passed.
func (l *ledger) loseAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	missed := l.carried.Before(l.stepped)
	if missed {
		clear(l.paused)
		clear(l.starts)
	}
	for _, e := range l.entries {
		if e.open {
			e.until = time.Now()
		}
		if missed {
			e.due, e.waits = time.Time{}, time.Time{}
		}
	}
}

// hasCarried notes that a round of a carrier was made.
func (l *ledger) hasCarried() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.carried = time.Now()
}

// claimed notes what a claim has returned. It is for attempts, or of expired jobs if request is nil.
func (l *ledger) claimed(p *process, token store.Token, request *store.ClaimRequest, jobs []store.ClaimedJob) {
	l.mu.Lock()
	defer l.mu.Unlock()
	isRepeated := l.isRepeated("Claim", token)
	for ref, e := range l.entries {
		isReturned := func(j store.ClaimedJob) bool { return j.Ref() == ref }
		if isRepeated && e.lease == token && e.isLeased() && !slices.ContainsFunc(jobs, isReturned) {
			l.breach("%s: leased, and not returned by a repeat of its claim", ref.ID)
		}
	}
	for i := range jobs {
		j := &jobs[i]
		e := l.get(j.Ref(), "a claimed job")
		if e.lease == j.Lease && e.open {
			continue
		}
		switch now := time.Now(); {
		case isRepeated:
			l.breach("%s: claimed by the repeat of a call that has not claimed it", j.ID)
		case e.state != "":
			l.breach("%s: claimed by %s, but it is %s", j.ID, p.name, e.state)
		case e.isLeased():
			l.breach("%s: claimed by %s, while %s holds it for another %v",
				j.ID, p.name, e.holder.name, e.until.Sub(now))
		case e.lease == j.Lease:
			l.breach("%s: claimed again under a token that has settled it", j.ID)
		case e.isMarked:
			l.breach("%s: claimed by %s, though it is to be cancelled", j.ID, p.name)
		}
		l.w.story.add("%s claims %s", p.name, j.ID)
		l.lose(e)
		if now := time.Now(); !now.Equal(e.at) {
			e.at, e.claims = now, 0
		}
		if e.claims++; e.claims == maxClaims {
			l.breach("%s: was claimed %d times at an instant", j.ID, e.claims)
			p.cut(allShards, time.Minute) // so that time goes on
		}
		if !e.isInternal() {
			if j.Attempts != e.attempts || j.FailedAttempts != e.failed {
				l.breach("%s: claimed with %d attempts, %d of them failed; the ledger has %d and %d",
					j.ID, j.Attempts, j.FailedAttempts, e.attempts, e.failed)
			}
			if !bytes.Equal(j.Body, e.body) {
				l.breach("%s: claimed with the body %q, edited to %q", j.ID, j.Body, e.body)
			}
		}
		if request != nil {
			l.checkClaim(p, j, e, request)
		}
		e.createdAt = j.CreatedAt // a step of the clock may move it
		e.lease, e.open, e.holder, e.since = j.Lease, true, p, time.Now()
		e.until, e.claimed, e.inLease, e.sending = e.since.Add(j.LeaseFor-time.Millisecond), j.Body, 0, false
		if e.expires = (time.Time{}); !j.ExpiresAt.IsZero() {
			e.expires = e.since.Add(j.ExpiresAt.Sub(l.w.clock()) + time.Millisecond)
		}
		e.isEnding, e.isSteady = request == nil, time.Since(l.reigned) > time.Second
		e.isPulled = request != nil && askedOf(request, j.Queue).Deliver == policy.DeliverPull
		if hasEnded := !j.ExpiresAt.IsZero() && !j.ExpiresAt.After(l.w.clock()); e.isPulled && !hasEnded {
			l.startOfLane(j.Queue) // a push starts later, if at all
		}
	}
}

// checkClaim checks that a job may be claimed for an attempt.
func (l *ledger) checkClaim(p *process, j *store.ClaimedJob, e *entry, request *store.ClaimRequest) {
	now, q := l.w.clock(), e.spec.Queue
	limits, from := l.limits(q)
	asked := askedOf(request, q)
	switch {
	case now.Before(e.due) && time.Now().Before(e.waits):
		l.breach("%s: claimed at %v, due at %v, which the store says is %v", j.ID, now, e.due, j.DueAt)
	case limits.Paused:
		l.breach("%s: claimed while its lane is paused", j.ID)
	case !asked.Deliver.Same(limits.Deliver) && !e.isInternal():
		l.breach("%s: claimed to %s it, its topic says %s", j.ID, asked.Deliver, limits.Deliver)
	case time.Now().Before(l.paused[q]):
		l.breach("%s: claimed while its lane has a cooldown for another %v", j.ID, time.Until(l.paused[q]))
	}
	claimed, hasOthers := 1, false
	for _, other := range l.entries {
		if other == e || other.spec.Queue != q || other.state != "" {
			continue
		}
		if other.isLeased() && !other.isEnding {
			claimed++
			hasOthers = hasOthers || other.lease.Owner() != j.Lease.Owner()
		}
		isBefore := other.number < e.number && !other.firstDue.After(now) && !other.mayBeCancelled()
		switch {
		case limits.Ordered && isBefore:
			l.breach("%s: claimed before %s, which was registered before it in an ordered lane", j.ID, other.spec.ID)
		case limits.Ordered && other.isLeased() && other.since.After(from):
			l.breach("%s: claimed beside %s in an ordered lane", j.ID, other.spec.ID)
		case l.open[q] && other.isLeased():
			l.breach("%s: claimed beside %s while the breaker of their lane is open", j.ID, other.spec.ID)
		}
	}
	allowed := limits.Concurrency
	if !hasOthers && !limits.Rate.Limited() {
		allowed += asked.Ahead
	}
	if claimed > allowed && !e.isInternal() {
		l.breach("%s: claimed as job %d of its lane, of which %s may hold %d, shared with others: %t",
			j.ID, claimed, p.name, allowed, hasOthers)
	}
}

// askedOf returns what a request asks of a queue.
func askedOf(request *store.ClaimRequest, q job.Queue) store.QueueClaim {
	return request.Queues[slices.IndexFunc(request.Queues, func(c store.QueueClaim) bool { return c.Queue == q })]
}

// mayBeCancelled reports whether the end of a lease has cancelled the job, which the ledger does not see.
func (e *entry) mayBeCancelled() bool { return e.isMarked && !e.isLeased() }

func (l *ledger) settle(p *process, token store.Token, items []store.Settlement, errs []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isRepeated("Settle", token, errs) {
		return
	}
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
		e.open, e.moved = false, time.Now()
		e.settled = append(e.settled, s.Lease)
		v := &s.Verdict
		l.w.story.add("%s settles %s: %s %s wait %v lane %v %q attempt %q",
			p.name, s.Ref.ID, v.Kind, v.Reason, v.Wait, v.LaneWait, v.Note, s.Attempt.Kind)
		body := s.NewBody(e.isMarked)
		if body != nil {
			e.body = body
		}
		if !e.isInternal() {
			l.judge(p, e, s)
		}
		if e.spec.Topic == job.ScheduleTopic && body != nil {
			e.isIdle = v.Wait > time.Hour // more than clocks are set back
			l.step(s)
		}
		switch {
		case body == nil: // what was made is dropped, too
		case e.spec.Topic == job.EventTopic:
			l.expand(e, s)
		case e.spec.Topic == job.WorkTopic:
			l.replay(e, s)
		}
		l.throttle(s)
		l.end(e, s)
		if e.spec.Topic == job.WorkTopic && body != nil {
			l.plan(e)
		}
	}
}

// judge checks the verdict of a process on an attempt against what the receiver answered.
func (l *ledger) judge(p *process, e *entry, s *store.Settlement) {
	a, v := &s.Attempt, &s.Verdict
	if a.Kind != "" && a.N != e.attempts+1 {
		l.breach("%s: attempt %d is stored after %d", s.Ref.ID, a.N, e.attempts)
	}
	result, isKnown := e.results[a.N]
	if a.Kind == job.KindAttempt {
		if !isKnown && v.Kind == policy.Delivered {
			l.breach("%s: delivered by attempt %d, which nobody has seen", s.Ref.ID, a.N)
		}
		if isKnown && result.Status != a.Status {
			l.breach("%s: attempt %d got %d and is stored with %d", s.Ref.ID, a.N, result.Status, a.Status)
		}
		e.attempts, e.lost = e.attempts+1, 0
		if v.Kind != policy.Delivered {
			e.failed++
		}
	}
	b := l.bounds(&e.spec, e.failed, e.since)
	if isKnown && a.Kind == job.KindAttempt {
		l.judgeAnswer(p, e, s, &result, b)
	}
	if v.Reason == policy.ReasonExhausted && e.failed <= b.fewest {
		l.breach("%s: exhausted after %d failures, with %d retries", s.Ref.ID, e.failed, b.fewest)
	}
	if a.Kind == "" && v.Kind == policy.Dead && v.Reason != policy.ReasonExhausted && v.Reason != policy.ReasonExpired {
		l.breach("%s: dead without an attempt, for the reason %q", s.Ref.ID, v.Reason)
	}
	// A process reckons that its claim took effect when it began.
	isExpired := !e.expires.IsZero() && time.Now().After(e.expires.Add(-3*time.Millisecond))
	if v.Reason == policy.ReasonExpired && a.Kind == "" && !isExpired && e.holder.isCalmSince(e.since.Add(-longest)) {
		l.breach("%s: expired without an attempt before its expiry", s.Ref.ID)
	}
}

// judgeAnswer checks the verdict on an attempt whose answer is known. No job lives so long that its age ends it.
func (l *ledger) judgeAnswer(p *process, e *entry, s *store.Settlement, result *policy.Result, b bounds) {
	v, least, most := &s.Verdict, max(b.shortest, result.RetryAfter), max(b.longest, result.RetryAfter)
	if result.Class == policy.ClassConsumer && result.RetryAfter > 0 {
		least, most = result.RetryAfter, result.RetryAfter
	}
	isGood := result.Accepted || result.Status/100 == 2
	isFinal := result.Status == http.StatusGone || result.NonRetryable
	// its claim took no time, and if it isSteady its settings are not old
	isCalm := p.isCalmSince(e.since.Add(-longest))
	mayExpire := !e.expires.IsZero() &&
		(!isCalm || l.stepped.After(e.since) || !time.Now().Add(most+time.Millisecond).Before(e.expires))
	var wanted string
	switch {
	case isGood && v.Kind != policy.Delivered:
		wanted = "delivered"
	case isGood:
	case result.Status == http.StatusGone && v.Reason != policy.ReasonGaveUp:
		wanted = "dead gave_up"
	case result.NonRetryable && v.Reason != policy.ReasonNonRetryable:
		wanted = "dead nonretryable"
	case isFinal != (v.Kind == policy.Dead && v.Reason != policy.ReasonExhausted && v.Reason != policy.ReasonExpired),
		v.Kind == policy.Delivered, v.Reason == policy.ReasonExpired && !mayExpire:
		wanted = fmt.Sprintf("tried again, or exhausted, with %d to %d retries, or expired at %v",
			b.fewest, b.most, e.expires)
	case v.Kind == policy.Again && e.failed > b.most && isCalm && e.isSteady:
		wanted = fmt.Sprintf("exhausted, with %d retries", b.most)
	case v.Kind == policy.Again && (v.Wait < least || v.Wait > most+time.Millisecond):
		wanted = fmt.Sprintf("to wait between %v and %v", least, most)
	}
	if wanted != "" {
		l.breach("%s: attempt %d, failure %d, got %d %s and is %s %q, waits %v: it should be %s",
			s.Ref.ID, s.Attempt.N, e.failed, result.Status, result.Class, v.Kind, v.Reason, v.Wait, wanted)
	}
}

// throttle notes the cooldown and the breaker of a lane.
func (l *ledger) throttle(s *store.Settlement) {
	if until := time.Now().Add(s.LaneChange.Cooldown - time.Millisecond); until.After(l.paused[s.Queue]) {
		l.paused[s.Queue] = until
	}
	switch s.LaneChange.Breaker {
	case store.OpenBreaker:
		l.open[s.Queue] = true
	case store.CloseBreaker:
		delete(l.open, s.Queue)
	case store.KeepBreaker:
	}
}

// end moves a job as its settlement says.
func (l *ledger) end(e *entry, s *store.Settlement) {
	kind := s.Verdict.Kind
	if e.isMarked && kind != policy.Delivered {
		e.state, e.endedAt = job.Cancelled, time.Now()
		return
	}
	switch kind {
	case policy.Delivered:
		e.state = job.Delivered
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
	e.endedAt = time.Now()
	callback, found := job.Ref{Namespace: s.Ref.Namespace, ID: e.callbackID()}, false
	for i := range s.Outbox {
		n := &s.Outbox[i]
		if n.Kind == job.KindCallback {
			found = true
			if l.outbox[n.Ref()] || n.Ref() != callback || wanted == nil || e.state == "" {
				l.breach("%s: is %q, and has the callback %s", s.Ref.ID, e.state, n.ID)
			}
		}
		l.outbox[n.Ref()] = true
	}
	if e.state != "" && wanted != nil && !found {
		l.breach("%s: is %s without its callback %s", s.Ref.ID, e.state, callback.ID)
	}
}

func (e *entry) callbackID() string {
	progress := job.Progress{CreatedAt: e.createdAt, Generation: e.generation}
	return job.CallbackID(job.Job{Spec: e.spec, Progress: progress})
}

func (l *ledger) alarmed(token store.Token, alarm store.Alarm, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isRepeated("Alarm", token, changed) || !changed {
		return
	}
	l.w.story.add("the alarm of %s is raised: %t", alarm.Topic, alarm.Raised)
	if alarm.Raised == l.raised[alarm.Topic] {
		l.breach("the alarm of %s is changed to %t, which it was", alarm.Topic, alarm.Raised)
	}
	l.raised[alarm.Topic] = alarm.Raised
	if alarm.Raised && len(alarm.Outbox) != 1 {
		l.breach("the alarm of %s has %d callbacks", alarm.Topic, len(alarm.Outbox))
	}
	for i := range alarm.Outbox {
		l.outbox[alarm.Outbox[i].Ref()] = true
	}
}

// change counts a change of a job. Nobody who has a name changes a job twice: clients have none here.
func (l *ledger) change(e *entry, version int64, actor string) {
	if version <= e.version {
		l.breach("%s: version %d follows %d", e.spec.ID, version, e.version)
	}
	l.w.story.add("%s is changed by %q", e.spec.ID, actor)
	e.version, e.moved = version, time.Now()
	l.changes[actor]++
	if l.isLate && l.hasSkipped(actor, e.spec.ID) { // the store may make a call that has failed, at any time
		l.gone[actor]++
	}
	if actor != "" && slices.Contains(e.actors, actor) {
		l.breach("%s: changed twice by %s", e.spec.ID, actor)
	}
	e.actors = append(e.actors, actor)
}

func (l *ledger) replaced(token store.Token, ref job.Ref, r store.Replacement, j job.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isRepeated("Replace", token, j.Version) {
		return
	}
	e := l.get(ref, "an edited job")
	e.isIdle = false
	l.change(e, j.Version, r.Actor)
	if e.isLeased() || e.state != "" {
		l.breach("%s: edited while %s", ref.ID, j.State)
	}
	l.lose(e)
	if r.Spec != nil {
		e.body = r.Spec.Body
	}
	if r.Due != nil {
		e.due, e.waits = j.DueAt, time.Now().Add(j.DueAt.Sub(l.w.clock()))
	}
	e.firstDue = j.FirstDueAt
}

func (l *ledger) cancelled(token store.Token, ref job.Ref, cancellation store.Cancellation, j job.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isRepeated("Cancel", token, j.Version, j.State) {
		return
	}
	e := l.get(ref, "a cancelled job")
	e.askedCancel, e.wasCancelled = true, true
	if j.Version == e.version { // it was cancelled, or marked, before: bulk work may count it
		if by := cancellation.Actor; !slices.Contains(e.actors, by) {
			e.actors = append(e.actors, by)
			l.changes[by]++
			l.gone[by]++
		}
		return
	}
	l.change(e, j.Version, cancellation.Actor)
	switch {
	case j.State != job.Cancelled:
		e.isMarked = true
	case e.isLeased() || e.state != "":
		l.breach("%s: cancelled while it was held, or had ended", ref.ID)
	default:
		l.lose(e)
		e.state, e.endedAt = job.Cancelled, time.Now()
	}
}

func (l *ledger) revived(token store.Token, items []store.Revival, results []store.ReviveResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	versions := make([]int64, len(results))
	for i := range results {
		versions[i] = results[i].Job.Version
	}
	if len(results) > 0 && l.isRepeated("Revive", token, versions) {
		return
	}
	for i, r := range results {
		if r.Err != nil {
			continue
		}
		e := l.get(items[i].Ref, "a revived job")
		l.change(e, r.Job.Version, items[i].Actor)
		if e.state == "" && !e.mayBeCancelled() {
			l.breach("%s: revived before it ended", items[i].Ref.ID)
		}
		l.lose(e)
		e.state, e.reason, e.failed, e.lost = "", "", 0, 0
		e.isMarked, e.isConfirmed, e.askedCancel = false, false, false
		if r.Job.Generation != e.generation+1 {
			l.breach("%s: generation %d follows %d", items[i].Ref.ID, r.Job.Generation, e.generation)
		}
		e.generation, e.due, e.firstDue = r.Job.Generation, r.Job.DueAt, r.Job.FirstDueAt
		e.waits = time.Now().Add(r.Job.DueAt.Sub(l.w.clock()))
		if r.Job.Attempts != e.attempts {
			l.breach("%s: revived with %d attempts, the ledger has %d", items[i].Ref.ID, r.Job.Attempts, e.attempts)
		}
	}
}

func (l *ledger) purged(token store.Token, items []store.Removal, errs []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(errs) > 0 && l.isRepeated("Purge", token, errs) {
		return
	}
	for i, err := range errs {
		if err != nil {
			continue
		}
		e := l.get(items[i].Ref, "a removed job")
		if e.state == "" && !e.mayBeCancelled() {
			l.breach("%s: removed before it ended", items[i].Ref.ID)
		}
		l.w.story.add("%s is removed", e.spec.ID)
		e.isPurged = true
		if e.spec.Topic == job.ScheduleTopic {
			continue // with its schedule
		}
		if actor := l.planner(e.spec.ID); actor != "" {
			l.changes[actor]++
		}
		for _, actor := range e.actors {
			l.gone[actor]++
		}
	}
}

// started notes that a receiver or a handler gets an attempt, which ends after timeout at the latest.
func (l *ledger) started(p *process, ref job.Ref, attempt int, body []byte, timeout time.Duration) {
	l.w.story.add("%s sends %s, attempt %d", p.name, ref.ID, attempt)
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.get(ref, "a job that was sent")
	e.inLease++
	now := time.Now()
	switch {
	case e.inLease > 1:
		l.breach("%s: sent %d times under one lease", ref.ID, e.inLease)
	case !e.isLeased() || e.holder != p:
		l.breach("%s: sent by %s, which has no lease", ref.ID, p.name)
	case attempt != e.attempts+1:
		l.breach("%s: sent as attempt %d after %d", ref.ID, attempt, e.attempts)
	case !bytes.Equal(body, e.claimed):
		l.breach("%s: sent with the body %q, claimed with %q", ref.ID, body, e.claimed)
	case e.until.Before(now.Add(timeout)):
		l.breach("%s: sent for up to %v, with a lease for another %v", ref.ID, timeout, e.until.Sub(now))
	case !e.expires.IsZero() && now.After(e.expires):
		l.breach("%s: sent %v after its expiry", ref.ID, now.Sub(e.expires))
	}
	e.sending = true
	l.startOfTopic(e.spec.Queue)
	l.startOfLane(e.spec.Queue)
	if n, limit := l.sending(e.spec.Queue), l.concurrency(e.spec.Queue); n > limit {
		l.breach("%s: %d attempts of its lane are under way, allowed are %d", ref.ID, n, limit)
	}
}

// leased notes that a consumer gets a job, perhaps late, and returns how often consumers have got it.
func (l *ledger) leased(p *process, leased *store.LeasedJob) (n int) {
	l.w.story.add("%s leases %s, attempt %d", p.name, leased.ID, leased.Attempts+1)
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.get(leased.Ref(), "a leased job")
	l.startOfTopic(e.spec.Queue) // what comes too late for its rate is not handed out
	e.leases++
	return e.leases
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

// answered notes the answer of a receiver as the process got it.
func (l *ledger) answered(p *process, ref job.Ref, attempt int, result policy.Result) {
	l.w.story.add("%s: %s, attempt %d: status %d %s accepted %t, asks for %v",
		p.name, ref.ID, attempt, result.Status, result.Class, result.Accepted, result.RetryAfter)
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
	l.checkEvents()
	for ref, e := range l.entries {
		if e.isInternal() {
			continue
		}
		j, err := get(ctx, st, ref)
		switch {
		case e.isPurged && errors.Is(err, store.ErrNotFound):
		case e.isPurged:
			l.breach("%s: was removed, and is still there", ref.ID)
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
		l.lose(e)
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
		l.breach("%s: has %d attempts in generation %d, by the ledger %d in %d",
			id, j.Attempts, j.Generation, e.attempts, e.generation)
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
