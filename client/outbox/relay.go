package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/client/internal/stream"
)

// Options are the options of NewRelay. The zero value is useful.
type Options struct {
	// Poll is how often the relay looks for rows without Wake, at least 1 ms; zero: 1 s.
	Poll time.Duration
	// Lease is how long the relay reserves rows, at least 1 s; zero: 1 min. The rows of a relay that died are tried
	// again after it, and a request may last half of it. Give it to all relays of a table: rows that are reserved for
	// more than twice as long are registered at once, since a clock must have been set back.
	Lease time.Duration
	// Logger gets a warning for each fault, each batch with refused jobs, rows that wait because a clock was set back,
	// and, once a minute, a slow table; nil: slog.Default.
	Logger *slog.Logger
}

const (
	defaultPoll  = time.Second
	leastPoll    = time.Millisecond
	defaultLease = time.Minute
	leastLease   = time.Second
)

// Relay registers the jobs of an outbox. Make one with NewRelay.
type Relay struct {
	db      *sql.DB
	dialect Dialect
	client  *client.Client
	poll    time.Duration
	lease   time.Duration
	log     *slog.Logger
	wake    chan struct{}
	// triedFirst: the next batch is of rows that were tried before, if there are any. Otherwise new rows come first,
	// and could keep them waiting for as long as there is a backlog. Only Run uses it.
	triedFirst   bool
	lookAhead    time.Time    // when Run looks for rows that wait for too long
	warnedSlow   time.Time    // when Run last logged that the table is slow
	claimedAhead atomic.Int64 // rows
	lookTime     atomic.Int64 // nanoseconds
}

// NewRelay returns a relay between a database with the table of Dialect.Schema and a server. It panics if the dialect
// is unknown.
func NewRelay(db *sql.DB, d Dialect, c *client.Client, o Options) *Relay {
	_ = d.Schema()
	return &Relay{
		db: db, dialect: d, client: c,
		poll:  max(cmp.Or(o.Poll, defaultPoll), leastPoll),
		lease: max(cmp.Or(o.Lease, defaultLease), leastLease),
		log:   cmp.Or(o.Logger, slog.Default()),
		wake:  make(chan struct{}, 1),
	}
}

// Wake lets Run look for rows at once. Call it after a commit. It does not wait, and may be called by several
// goroutines.
func (r *Relay) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run registers jobs until ctx ends, and returns then. Faults of the database and of Ringback are logged and repeated
// with growing waits. Of rows in progress at the end those that are registered are deleted, and the others are
// released. Wait for Run to return before you close the database or end the program: rows that could not be released
// are registered when their lease has ended.
//
// Several relays may run at once on one table, in one program or several.
func (r *Relay) Run(ctx context.Context) {
	var pause stream.Backoff
	for ctx.Err() == nil {
		more, err := r.relayBatch(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			var after time.Duration
			if p, ok := errors.AsType[*client.Problem](err); ok {
				after = min(p.RetryAfter(), longestFaultWait)
			}
			wait := pause.Next(after)
			r.log.Warn("outbox relay failed, retrying", "err", err, "retry_in", wait)
			sleep(ctx, wait, nil)
		case more:
			pause = stream.Backoff{}
		default:
			pause = stream.Backoff{}
			sleep(ctx, r.poll, r.wake)
		}
	}
}

// sleep waits, until a wake-up at most, or until ctx ends.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// row is a row that is reserved.
type row struct {
	seq     int64
	id      string
	size    int // bytes of job
	tries   int
	addedAt int64 // Unix milliseconds
	job     []byte

	registered bool
	problem    *client.Problem // nil: not refused
}

// relayBatch registers the jobs of one batch of rows. It reports whether there may be more.
func (r *Relay) relayBatch(ctx context.Context) (more bool, err error) {
	now := time.Now()
	until := now.Add(r.lease).UnixMilli()
	limited, cancel := context.WithDeadline(ctx, now.Add(r.lease/2))
	defer cancel()
	rows, more, err := r.look(limited, now, until)
	r.noteLook(time.Since(now))
	if err != nil {
		return false, err // it says what failed
	}
	for len(rows) > 0 && err == nil {
		n := split(rows)
		err = r.relayRows(limited, rows[:n], until)
		rows = rows[n:]
	}
	return more, errors.Join(err, r.settle(ctx, releaseRows, rows, until))
}

// slowLook is how long a look for rows takes at least that is logged, and slowEvery how often.
const (
	slowLook  = 100 * time.Millisecond
	slowEvery = time.Minute
)

// noteLook records how long a look for rows took.
func (r *Relay) noteLook(took time.Duration) {
	r.lookTime.Store(int64(took))
	if took >= slowLook && time.Since(r.warnedSlow) >= slowEvery {
		r.warnedSlow = time.Now()
		r.log.Warn("outbox table is slow, jobs are registered late", "look", took)
	}
}

// look reserves rows to register, and reports whether there may be more.
func (r *Relay) look(ctx context.Context, now time.Time, until int64) (rows []*row, more bool, err error) {
	if !now.Before(r.lookAhead) {
		if rows, err = r.claimAhead(ctx, now, until); err != nil || len(rows) > 0 {
			return rows, true, err
		}
		r.lookAhead = now.Add(r.lease)
	}
	found, err := r.any(ctx, isDue, [2]int64{0, now.UnixMilli()})
	if err != nil || !found {
		return nil, false, err
	}
	return r.claim(ctx, now.UnixMilli(), until)
}

// claimAhead reserves rows that wait for longer than any relay lets them: the clock was set back after they were
// reserved or refused. It leaves another lease's length, for the clocks of other machines.
func (r *Relay) claimAhead(ctx context.Context, now time.Time, until int64) ([]*row, error) {
	reserved, refused := now.Add(2*r.lease), now.Add(max(longestRefusedWait, r.lease)+r.lease)
	times := [2]int64{reserved.UnixMilli(), refused.UnixMilli()}
	if found, err := r.any(ctx, isAhead, times); err != nil || !found {
		return nil, err
	}
	rows, err := r.dialect.claim(ctx, r.db, isAhead, times, until)
	if err != nil {
		return nil, fmt.Errorf("reserve rows: %w", err)
	}
	if len(rows) > 0 {
		r.claimedAhead.Add(int64(len(rows)))
		r.log.Warn("rows of the outbox wait for longer than a relay lets them, registering them now: was the clock "+
			"set back?",
			"jobs", len(rows), "job", rows[0].id)
	}
	return rows, nil
}

// claim reserves rows that are due, and reports whether there may be more. While there is a backlog, every second batch
// is of rows that were tried before.
func (r *Relay) claim(ctx context.Context, now, until int64) (rows []*row, more bool, err error) {
	if r.triedFirst {
		r.triedFirst = false
		if rows, err = r.dialect.claim(ctx, r.db, isDue, [2]int64{1, now}, until); err == nil && len(rows) > 0 {
			return rows, true, nil
		}
	}
	if err == nil {
		rows, err = r.dialect.claim(ctx, r.db, isDue, [2]int64{0, now}, until)
	}
	if err != nil {
		return nil, false, fmt.Errorf("reserve rows: %w", err)
	}
	r.triedFirst = len(rows) == maxBatch
	return rows, r.triedFirst, nil
}

// any reports whether rows meet a condition. It takes no lock, so that a relay without work is in nobody's way.
func (r *Relay) any(ctx context.Context, condition string, times [2]int64) (bool, error) {
	var one int
	err := r.db.QueryRowContext(ctx, r.dialect.where(anyFound, condition), times[0], times[1]).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for rows: %w", err)
	}
	return true, nil
}

// split returns the number of rows for one request, at least one.
func split(rows []*row) int {
	bytes := 0
	for i, w := range rows {
		if bytes += w.size + 1; i > 0 && bytes > maxRequestBytes {
			return i
		}
	}
	return len(rows)
}

// relayRows registers the jobs of rows in one request, and deletes or marks them, or releases them.
func (r *Relay) relayRows(ctx context.Context, rows []*row, until int64) error {
	err := r.load(ctx, rows, until)
	if err == nil {
		err = r.register(ctx, rows)
	}
	var registered, released, refused []*row
	var quota *client.Problem
	overQuota, away := 0, 0
	for _, w := range rows {
		w.job = nil
		switch {
		case w.registered:
			registered = append(registered, w)
		case w.problem != nil:
			refused = append(refused, w)
			if w.problem.Status == http.StatusTooManyRequests {
				quota = w.problem
				overQuota++
			} else if isTemporary(w.problem) {
				away++
			}
		default:
			released = append(released, w)
		}
	}
	if err == nil && overQuota > 0 && overQuota == len(registered)+len(refused) {
		err = fmt.Errorf("register jobs: %w", quota) // it is that of all rows
	}
	err = errors.Join(err, r.settle(ctx, deleteRows, registered, until), r.refuse(ctx, refused, until),
		r.settle(ctx, releaseRows, released, until))
	if err == nil && away > 0 && len(registered) == 0 { // of a shard, perhaps, and those behind are of another
		sleep(ctx, stream.FirstWait, nil)
	}
	return err
}

// load reads the jobs of rows. Rows that are not there any more have none.
func (r *Relay) load(ctx context.Context, rows []*row, until int64) error {
	bySeq := make(map[int64]*row, len(rows))
	for _, w := range rows {
		bySeq[w.seq] = w
	}
	statement, args := r.dialect.list(selectJobs, rows, until)
	found, err := r.db.QueryContext(ctx, statement, args...)
	if err != nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	defer func() { _ = found.Close() }()
	for found.Next() {
		var seq int64
		var text []byte
		if err := found.Scan(&seq, &text); err != nil {
			return fmt.Errorf("read jobs: %w", err)
		}
		bySeq[seq].job = text
	}
	if err := found.Err(); err != nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	return nil
}

// settleTimeout bounds the statements that record what became of rows. They are executed also when Run ends.
const settleTimeout = 10 * time.Second

// settle deletes or releases rows whose lease has not ended.
func (r *Relay) settle(ctx context.Context, statement string, rows []*row, until int64) error {
	if len(rows) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	statement, args := r.dialect.list(statement, rows, until)
	if err := r.record(ctx, statement, args...); err != nil {
		return fmt.Errorf("record %d rows: %w", len(rows), err)
	}
	return nil
}

// Tries of a statement that records what became of rows, and the wait after the first, which doubles.
const (
	recordTries = 6
	recordPause = 5 * time.Millisecond
)

// record executes a statement, and repeats it after faults: MySQL may end any transaction for a deadlock with another
// relay's, and jobs whose rows stay would be registered again.
func (r *Relay) record(ctx context.Context, statement string, args ...any) error {
	for try := 0; ; try++ {
		err := r.dialect.execute(ctx, r.db, statement, args)
		if err == nil || try == recordTries-1 {
			return err // the caller says it
		}
		wait := recordPause << try
		sleep(ctx, wait/2+rand.N(wait), nil)
	}
}

// refuse records the problems of rows.
func (r *Relay) refuse(ctx context.Context, rows []*row, until int64) error {
	if len(rows) == 0 {
		return nil
	}
	r.log.Warn("jobs are not registered, they stay in the outbox and are retried", "jobs", len(rows), "job",
		rows[0].id, "err", rows[0].problem)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	statement := r.dialect.bind(refuseRow)
	for _, w := range rows {
		wait, tries := afterRefusal(w.problem, w.tries), 1
		if isTemporary(w.problem) {
			wait, tries = afterFault(w.problem, time.Since(time.UnixMilli(w.addedAt))), 0
		}
		next := time.Now().Add(wait).UnixMilli()
		if err := r.record(ctx, statement, next, tries, problemText(w.problem), until, w.seq); err != nil {
			return fmt.Errorf("record the problem of a job: %w", err)
		}
	}
	return nil
}

// Waits before a job is tried again, at least and at most: one that is refused, and one that may be registered later as
// it is.
const (
	firstRefusedWait, longestRefusedWait = 10 * time.Second, time.Hour
	leastFaultWait, longestFaultWait     = time.Second, time.Minute
)

// afterRefusal returns the wait before a job that was refused is tried again. It doubles with each try.
func afterRefusal(p *client.Problem, tries int) time.Duration {
	wait := longestRefusedWait
	if tries < 16 { // more would overflow, and is longer than the longest
		wait = min(firstRefusedWait<<tries, longestRefusedWait)
	}
	return max(wait, min(p.RetryAfter(), longestRefusedWait))
}

// afterFault returns the wait before a job is tried again that a quota or a fault keeps from being registered: as long
// as it has waited.
func afterFault(p *client.Problem, waited time.Duration) time.Duration {
	return min(max(waited, p.RetryAfter(), leastFaultWait), longestFaultWait)
}

// maxProblemBytes bounds the text of a problem in the table.
const maxProblemBytes = 2000

// problemText returns a problem as every database can store it.
func problemText(p *client.Problem) string {
	text := p.Error()
	text = text[:min(len(text), maxProblemBytes)]
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
}
