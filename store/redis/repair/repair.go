// Package repair checks and repairs one shard's data.
//
// A Redis that comes back after a crash may have lost its last writes, and Redis 7.0 has applied half of a script after a torn
// append-only file. So a shard is checked from end to end when its server's run id is not the one that the key Checked names. The
// shard has that key, so that it does not matter which process carries it.
//
// The check is cut into steps of a few milliseconds of Redis's time. A check after a crash takes half of the time, a daily one
// about a hundredth. See DESIGN.md for what is checked and in which order.
package repair

import (
	"context"
	"embed"
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
	"github.com/ringback/ringback/store/redis/health"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/script"
	"github.com/ringback/ringback/store/redis/shard"
)

//go:embed *.lua
var files embed.FS

var (
	scriptIndex     = script.New(files, "index")
	scriptQueues    = script.New(files, "queues", script.MovingJobs, "mend")
	scriptEnded     = script.New(files, "ended", script.MovingJobs, "mend")
	scriptScan      = script.New(files, "scan", "record")
	scriptJobs      = script.New(files, "jobs", script.MovingJobs, "mend")
	scriptLeftovers = script.New(files, "leftovers")
	scriptOutbox    = script.New(files, "outbox")
	scriptAgenda    = script.New(files, "agenda")
	scriptCounts    = script.New(files, "counts")
	scriptBytes     = script.New(files, "bytes")
)

// Pauses and bounds.
const (
	// CheckPause is the pause between two looks at whether a check is due.
	CheckPause = 5 * time.Second
	// checkInterval is how long after a complete check the next one begins if nothing happened.
	checkInterval = 24 * time.Hour
	// deniedPause is the pause after a command that the server's ACL denies.
	deniedPause = time.Minute
	// rescoringPause is the pause while scores are moved after a step of the clock.
	rescoringPause = 100 * time.Millisecond
	// CrashShare and idleShare are how long the process pauses after a step, in multiples of the step's duration: in a check
	// after a crash, and in a daily one.
	CrashShare, idleShare = 1, 100
	// TurnPause is the pause while another shard makes a step.
	TurnPause = 2 * time.Millisecond
	// StepSize bounds the jobs, entries or queues in one step.
	StepSize = 256
	// stepBytes is about how many bytes of records one step reads.
	stepBytes = 256 << 10
)

// Repairer checks and repairs one shard. It is safe for concurrent use.
type Repairer struct {
	*shard.Shard
	health  *health.Monitor
	process *Process

	mu sync.Mutex
	// Last is the content of the key Keys.Checked when it was read or written last; empty: not read yet.
	Last string
	// Pass is the check in progress; nil: none.
	Pass *Pass
}

// New returns the repairer of a shard.
func New(s *shard.Shard, h *health.Monitor, p *Process) *Repairer {
	return &Repairer{Shard: s, health: h, process: p}
}

// Process is what the repairers of one process share.
type Process struct {
	Crash, Idle    Pace // of checks after a crash, and of daily ones
	QueuesPerCount int  // how many queues of a topic one script counts, about ten milliseconds
	JobsPerCount   int  // how many ended jobs one script adds up
	warnDenied     sync.Once
}

// NewProcess returns a process with the default bounds.
func NewProcess() *Process { return &Process{QueuesPerCount: 8192, JobsPerCount: 4096} }

// A Pass is one check of a whole shard.
type Pass struct {
	Slow   bool // a daily check
	Step   int
	server string // the run id of the server that it is for
	began  time.Time
	total  map[store.RepairKind]int

	found    map[store.RepairKind]int // in this call
	examples []string

	count int // jobs to read at once; one at first, since they may be large
	lost  int // jobs whose queue has no name
	stepState
}

// stepState is the progress of a pass in its step.
type stepState struct {
	cursor    string
	last      bool            // the last queues have been read
	Queues    []*layout.Queue // still to be checked
	set, at   string          // where to continue in the first of them
	topics    []string        // still to be checked
	afterName string          // the last topic that was read
	state     int             // of the states of ended jobs
	place     int64           // in a sorted set
	sums      sums
}

// steps of a pass, in order. Each is called until it is done.
var steps = []func(*Repairer, context.Context, *Pass) (done bool, err error){
	(*Repairer).repairNumbers, (*Repairer).repairQueues, (*Repairer).repairEnded, (*Repairer).repairJobs,
	leftovers("runs"), leftovers("attempts"), leftovers("ids"), (*Repairer).repairOutbox, (*Repairer).repairAgenda,
	(*Repairer).repairCounts, (*Repairer).repairBytes,
}

// Repair makes one step of the check of a shard that needs one.
func (s *Repairer) Repair(ctx context.Context) (store.RepairResult, error) {
	result, err := s.repair(ctx)
	if err != nil && strings.Contains(err.Error(), "NOPERM") {
		s.process.warnDenied.Do(func() {
			s.Log.WarnContext(ctx, "redis refuses the consistency check, missing ACL rights; lost data are not repaired",
				"err", err)
		})
		result.Wait = deniedPause
		return result, nil
	}
	if err != nil {
		return result, fmt.Errorf("repair: %w", err)
	}
	return result, nil
}

func (s *Repairer) repair(ctx context.Context) (store.RepairResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	result := store.RepairResult{Wait: CheckPause}
	s.health.Check(ctx)
	result.Repairs = s.health.TakeRepairs()
	p, err := s.currentPass(ctx)
	if p == nil || err != nil {
		return result, err
	}
	if s.Rescoring.Load() { // throttles that are not moved yet would seem to be over
		result.Wait = rescoringPause
		return result, nil
	}
	pace, share := &s.process.Crash, CrashShare
	if p.Slow {
		pace, share = &s.process.Idle, idleShare // which must not delay checks after a crash
	}
	if result.Wait = pace.Begin(); result.Wait > 0 {
		return result, nil
	}
	began := time.Now()
	result.Complete, err = s.advance(ctx, p)
	result.Wait = pace.End(began, share)
	result.Repairs = merge(result.Repairs, p.found)
	if errors.Is(err, script.ErrStale) {
		s.ForgetQueues() // the step is made again
		return result, nil
	}
	if err == nil && result.Complete {
		result.Wait = CheckPause
	}
	return result, err
}

// currentPass returns the check in progress, and begins one if it is due. nil: none.
func (s *Repairer) currentPass(ctx context.Context) (*Pass, error) {
	server := s.health.RunID(ctx, s.Shard)
	if server == "" {
		return nil, nil
	}
	if s.Pass != nil && s.Pass.server == server {
		return s.Pass, nil
	}
	if s.Pass == nil && !strings.HasPrefix(s.Last, server+" ") { // another process may have checked it since
		stored, err := s.Client.Get(ctx, s.Keys.Checked).Result()
		if err != nil && !connect.IsNil(err) {
			return nil, connect.MapError(ctx, err)
		}
		s.Last = stored
	}
	last, ms, _ := strings.Cut(s.Last, " ")
	same := s.Pass == nil && last == server
	if same && time.Since(layout.Time(layout.Int(ms))) < checkInterval {
		return nil, nil
	}
	s.Pass = &Pass{server: server, Slow: same, began: time.Now(), count: 1, total: map[store.RepairKind]int{}, stepState: stepState{cursor: "0"}}
	return s.Pass, nil
}

// advance makes one step of a pass, and ends the pass after the last.
func (s *Repairer) advance(ctx context.Context, p *Pass) (complete bool, err error) {
	p.found, p.examples = nil, nil
	done, err := steps[p.Step](s, ctx, p)
	if len(p.found) > 0 {
		p.total = merge(p.total, p.found)
		s.Log.WarnContext(ctx, "consistency check repaired data", "shard", s.Index, "repairs", kinds(p.found),
			"jobs", p.examples)
	}
	if err != nil || !done {
		return false, err
	}
	if p.Step++; p.Step < len(steps) {
		p.stepState = stepState{cursor: "0"}
		return false, nil
	}
	mark := p.server + " " + strconv.FormatInt(time.Now().UnixMilli(), 10)
	if err := s.Client.Set(ctx, s.Keys.Checked, mark, 0).Err(); err != nil && !strings.Contains(err.Error(), "OOM") {
		p.Step-- // the last step is made again
		return false, connect.MapError(ctx, err)
	}
	level := slog.LevelDebug
	if len(p.total) > 0 {
		level = slog.LevelWarn
	}
	s.Log.Log(ctx, level, "consistency check finished", "shard", s.Index, "repairs", kinds(p.total), "took", time.Since(p.began))
	s.Last, s.Pass = mark, nil
	return true, nil
}

// note counts repairs.
func (p *Pass) note(kind store.RepairKind, n int64, examples ...string) {
	if n > 0 {
		p.found = merge(p.found, map[store.RepairKind]int{kind: int(n)})
		p.examples = append(p.examples, examples...)
	}
}

// noteAll counts the repairs that a script reports.
func (p *Pass) noteAll(report []string, examples []string) {
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

// A Pace runs the steps of one process, of all its shards, one at a time with a pause after each.
type Pace struct {
	Next time.Time // the next step

	mu   sync.Mutex
	busy bool
}

// Begin begins a step, which End ends; or returns how long to wait before it may begin.
func (p *Pace) Begin() (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait = time.Until(p.Next); wait > 0 {
		return wait
	}
	if p.busy {
		return TurnPause
	}
	p.busy = true
	return 0
}

// End ends a step, and returns the pause after it.
func (p *Pace) End(began time.Time, share int) time.Duration {
	pause := min(time.Since(began)*time.Duration(share), CheckPause)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy, p.Next = false, time.Now().Add(pause)
	return pause
}

// IsChecked reports whether the shard was checked since its server was started. It asks the server itself: what the process knows
// may be older than a restart.
func (s *Repairer) IsChecked(ctx context.Context) (bool, error) {
	server, err := s.Client.Node(ctx, s.Keys.Jobs)
	if err != nil {
		return false, connect.MapError(ctx, err)
	}
	run, err := connect.RunID(ctx, server)
	if err != nil {
		return false, err
	}
	if !s.mu.TryLock() { // a step is in progress
		return false, nil
	}
	defer s.mu.Unlock()
	last, _, _ := strings.Cut(s.Last, " ")
	return last == run && (s.Pass == nil || s.Pass.Slow), nil
}
