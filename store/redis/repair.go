package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// A Redis that comes back after a crash may have lost its last writes, and Redis 7.0 has applied half of a script after a
// torn append-only file. So each shard is checked from end to end when its server is not the one that it was checked
// for last: another process, or with another history of replication. The shard says for which that was, so that it does
// not matter which process carries it then. See DESIGN.md for what is checked and in which order.
//
// The check is cut into steps of a few milliseconds of Redis's time. A check after a crash takes half of the time, one
// that is made daily about a hundredth.
const (
	// repairLook is the pause between two looks at whether a shard must be checked.
	repairLook = 5 * time.Second
	// repairEvery is how long after a check of a whole shard the next one begins if nothing happened.
	repairEvery = 24 * time.Hour
	// repairDenied is the pause after a call that the server does not permit.
	repairDenied = time.Minute
	// rescorePause is the pause while queues are rescored after a step of the clock.
	rescorePause = 100 * time.Millisecond
	// repairShare and repairIdle are how many times as long as a step took the process pauses after it.
	repairShare, repairIdle = 1, 100
	// repairTurn is the pause while another shard makes a step.
	repairTurn = 2 * time.Millisecond
	// repairMost bounds the jobs, entries or queues that one step looks at.
	repairMost = 256
	// repairBytes is about how much of records one step reads.
	repairBytes = 256 << 10
)

// repairs is how far the check of one shard is.
type repairs struct {
	mu   sync.Mutex
	last string // what the key checked held when it was read or written last; empty: not read yet
	pass *pass  // under way; nil: none
}

// A pass is one check of a whole shard.
type pass struct {
	server string
	slow   bool
	began  time.Time
	step   int
	total  map[store.RepairKind]int

	found    map[store.RepairKind]int // in this call
	examples []string

	count int // jobs to read at once; one at first, since they may be large
	lost  int // jobs whose queue has no name
	checkStep
}

// checkStep is how far a pass is in its step.
type checkStep struct {
	cursor    string
	last      bool            // the last queues have been read
	queues    []*layout.Queue // still to be walked through
	set, at   string          // where to go on in the first of them
	topics    []string        // still to be looked at
	afterName string          // the last topic that was read
	state     int             // of the states of ended jobs
	place     int64           // in a sorted set
	sums      sums
}

// steps of a pass, in order. Each is called until it is done.
var steps = []func(*Store, context.Context, *shard, *pass) (done bool, err error){
	(*Store).repairNumbers, (*Store).repairQueues, (*Store).repairEnded, (*Store).repairJobs,
	leftovers("runs"), leftovers("tries"), leftovers("ids"), (*Store).repairOutbox, (*Store).repairAgenda,
	(*Store).repairCounts, (*Store).repairBytes,
}

// Repair makes one step of the check of a shard that needs one.
func (sh *shard) Repair(ctx context.Context) (store.RepairResult, error) {
	s := sh.store
	result, err := s.repair(ctx, sh)
	if err != nil && strings.Contains(err.Error(), "NOPERM") {
		s.unchecked.Do(func() {
			s.log.WarnContext(ctx, "redis refuses the consistency check, missing ACL rights; lost data are not repaired",
				"err", err)
		})
		result.Wait = repairDenied
		return result, nil
	}
	if err != nil {
		return result, fmt.Errorf("repair: %w", err)
	}
	return result, nil
}

func (s *Store) repair(ctx context.Context, sh *shard) (store.RepairResult, error) {
	sh.repairs.mu.Lock()
	defer sh.repairs.mu.Unlock()
	result := store.RepairResult{Wait: repairLook}
	s.checkHealth(ctx)
	result.Repairs = s.health.take()
	p, err := s.pass(ctx, sh)
	if p == nil || err != nil {
		return result, err
	}
	if sh.watch.rescoring() { // looked at now, a gate of before the step would seem to be over
		result.Wait = rescorePause
		return result, nil
	}
	pace, share := &s.pace, repairShare
	if p.slow {
		pace, share = &s.idlePace, repairIdle // which must not hold up those after a restart
	}
	if result.Wait = pace.begin(); result.Wait > 0 {
		return result, nil
	}
	began := time.Now()
	result.Complete, err = s.stride(ctx, sh, p)
	result.Wait = pace.end(began, share)
	result.Repairs = merge(result.Repairs, p.found)
	if errors.Is(err, errStale) {
		sh.forget() // the step is made again
		return result, nil
	}
	if err == nil && result.Complete {
		result.Wait = repairLook
	}
	return result, err
}

// pass is the check that is under way; one begins when it is needed.
func (s *Store) pass(ctx context.Context, sh *shard) (*pass, error) {
	r, server := &sh.repairs, s.runOf(ctx, sh)
	if server == "" {
		return nil, nil
	}
	if r.pass != nil && r.pass.server == server {
		return r.pass, nil
	}
	if r.pass == nil && !strings.HasPrefix(r.last, server+" ") { // another process may have checked it since
		stored, err := s.client.Get(ctx, sh.keys.Checked).Result()
		if err != nil && !connect.IsNil(err) {
			return nil, connect.MapError(ctx, err)
		}
		r.last = stored
	}
	last, ms, _ := strings.Cut(r.last, " ")
	same := r.pass == nil && last == server
	if same && time.Since(layout.Time(layout.Int(ms))) < repairEvery {
		return nil, nil
	}
	r.pass = &pass{server: server, slow: same, began: time.Now(), count: 1, total: map[store.RepairKind]int{}, checkStep: checkStep{cursor: "0"}}
	return r.pass, nil
}

// stride makes one step of a pass, and ends the pass after the last.
func (s *Store) stride(ctx context.Context, sh *shard, p *pass) (complete bool, err error) {
	p.found, p.examples = nil, nil
	done, err := steps[p.step](s, ctx, sh, p)
	if len(p.found) > 0 {
		p.total = merge(p.total, p.found)
		s.log.WarnContext(ctx, "consistency check repaired data", "shard", sh.index, "repairs", kinds(p.found),
			"jobs", p.examples)
	}
	if err != nil || !done {
		return false, err
	}
	if p.step++; p.step < len(steps) {
		p.checkStep = checkStep{cursor: "0"}
		return false, nil
	}
	mark := p.server + " " + strconv.FormatInt(time.Now().UnixMilli(), 10)
	if err := s.client.Set(ctx, sh.keys.Checked, mark, 0).Err(); err != nil && !strings.Contains(err.Error(), "OOM") {
		p.step-- // the last step is made again
		return false, connect.MapError(ctx, err)
	}
	level := slog.LevelDebug
	if len(p.total) > 0 {
		level = slog.LevelWarn
	}
	s.log.Log(ctx, level, "consistency check finished", "shard", sh.index, "repairs", kinds(p.total), "took", time.Since(p.began))
	sh.repairs.last, sh.repairs.pass = mark, nil
	return true, nil
}

// note counts repairs.
func (p *pass) note(kind store.RepairKind, n int64, examples ...string) {
	if n > 0 {
		p.found = merge(p.found, map[store.RepairKind]int{kind: int(n)})
		p.examples = append(p.examples, examples...)
	}
}

// noteAll counts the repairs that a script reports.
func (p *pass) noteAll(report []string, examples []string) {
	for i := 1; i < len(report); i += 2 {
		p.note(store.RepairKind(report[i-1]), layout.Int(report[i]))
	}
	p.examples = append(p.examples, examples...)
}

func merge(into, more map[store.RepairKind]int) map[store.RepairKind]int {
	for kind, n := range more {
		if into == nil {
			into = map[store.RepairKind]int{}
		}
		into[kind] += n
	}
	return into
}

// kinds writes counts of repairs for the log.
func kinds(counts map[store.RepairKind]int) string {
	var parts []string
	for kind, n := range counts {
		parts = append(parts, string(kind)+"="+strconv.Itoa(n))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// A pace keeps the steps of one process apart, whatever their shards: one at a time, and a pause after it.
type pace struct {
	mu   sync.Mutex
	busy bool
	next time.Time
}

// begin takes the turn, for a step that end ends; else it answers how long to wait for it.
func (p *pace) begin() (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait = time.Until(p.next); wait > 0 {
		return wait
	}
	if p.busy {
		return repairTurn
	}
	p.busy = true
	return 0
}

// end notes a step that has ended, and gives the pause after it.
func (p *pace) end(began time.Time, share int) time.Duration {
	pause := min(time.Since(began)*time.Duration(share), repairLook)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy, p.next = false, time.Now().Add(pause)
	return pause
}
