// Package repair checks and repairs one shard's data.
//
// A Redis that comes back after a crash may have lost its last writes, and Redis 7.0 has applied half of a script after
// a torn append-only file. So a shard is checked from end to end when its server's run id is not the one that the key
// Checked names. The shard has that key, so that it does not matter which process carries it.
//
// The check is cut into steps of a few milliseconds of Redis's time. A check after a crash takes half of the time, a
// daily one about a hundredth. See DESIGN.md for what is checked and in which order.
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
	"github.com/ringback/ringback/store/redis/shard"
)

//go:embed *.lua
var files embed.FS

var (
	scriptIndex     = newCheck("index")
	scriptQueues    = newCheck("queues", layout.MovingJobs, "mend")
	scriptEnded     = newCheck("ended", layout.MovingJobs, "mend")
	scriptScan      = layout.New(files, "scan", "record")
	scriptJobs      = newCheck("jobs", layout.MovingJobs, "mend")
	scriptLeftovers = newCheck("leftovers")
	scriptOutbox    = newCheck("outbox")
	scriptAgenda    = newCheck("agenda")
	scriptCounts    = newCheck("counts")
	scriptBytes     = newCheck("bytes")
	scriptMark      = layout.New(files, "mark")
)

// A check is a script that repairs what it finds, and the same script that only looks (audit.lua).
type check struct{ repair, audit *layout.Script }

func newCheck(name string, include ...string) check {
	return check{layout.New(files, name, include...), layout.New(files, name, append([]string{"audit"}, include...)...)}
}

// of returns the script for a pass.
func (c check) of(p *pass) *layout.Script {
	if p.audit {
		return c.audit
	}
	return c.repair
}

// Pauses and bounds.
const (
	// checkPause is the pause between two looks at whether a check is due.
	checkPause = 5 * time.Second
	// checkInterval is how long after a complete check the next one begins if nothing happened.
	checkInterval = 24 * time.Hour
	// deniedPause is the pause after a command that the server's ACL denies.
	deniedPause = time.Minute
	// rescoringPause is the pause while scores are moved after a step of the clock.
	rescoringPause = 100 * time.Millisecond
	// crashShare and idleShare are how long the process pauses after a step, in multiples of the step's duration: in a
	// check after a crash, and in a daily one.
	crashShare, idleShare = 1, 100
	// turnPause is the pause while another shard makes a step.
	turnPause = 2 * time.Millisecond
	// stepSize bounds the jobs, entries or queues in one step.
	stepSize = 256
	// stepBytes is about how many bytes of records one step reads.
	stepBytes = 256 << 10
	// topicsPerStep bounds the topics in one step; those with fewer queues than lanesPerTopic are counted together.
	topicsPerStep, lanesPerTopic = 64, 64
	// queuesPerCount is how many queues of a topic one script counts, about ten milliseconds, and jobsPerCount of how
	// many jobs one script adds up the bytes.
	queuesPerCount, jobsPerCount = 8192, 4096
)

// Repairer checks and repairs one shard. It is safe for concurrent use.
type Repairer struct {
	*shard.Shard
	health  *health.Monitor
	process *Process

	mu   sync.Mutex
	pass *pass // the check in progress; nil: none
}

// New returns the repairer of a shard.
func New(s *shard.Shard, h *health.Monitor, p *Process) *Repairer {
	return &Repairer{Shard: s, health: h, process: p}
}

// Process is what the repairers of one process share.
type Process struct {
	crash, idle pace // of checks after a crash, and of daily ones
	warnDenied  sync.Once
}

// NewProcess returns a process with a monotonic clock.
func NewProcess(elapsed func() time.Duration) *Process {
	return &Process{crash: pace{elapsed: elapsed, share: crashShare}, idle: pace{elapsed: elapsed, share: idleShare}}
}

// A pass is one check of a whole shard.
type pass struct {
	audit  bool // it changes nothing
	daily  bool
	step   int
	server string // the run id of the server that it is for
	began  time.Time
	total  map[store.RepairKind]int

	faults []store.Fault // found in this call
	ledger store.Ledger  // counted in this call

	count int // jobs to read at once; one at first, since they may be large
	lost  int // jobs whose queue has no name
	stepState
}

// stepState is the progress of a pass in its step.
type stepState struct {
	cursor    string
	last      bool            // the last queues have been read
	queues    []*layout.Queue // still to be checked
	topics    []string        // still to be checked
	set, at   string          // where to continue in the first queue or topic
	afterName string          // the last topic that was read
	state     int             // of the first topic's lists of ended jobs
	place     int64           // in a sorted set
	sums      sums
}

// steps of a pass, in order. Each is called until it is done.
var steps = []func(*Repairer, context.Context, *pass) (done bool, err error){
	(*Repairer).repairNumbers, (*Repairer).repairQueues, (*Repairer).repairEnded, (*Repairer).repairJobs,
	leftovers("runs"), leftovers("attempts"), leftovers("ids"), leftovers("ttl"), (*Repairer).repairOutbox,
	(*Repairer).repairAgenda, (*Repairer).repairCounts, (*Repairer).repairBytes,
}

// Repair makes one step of the check of a shard that needs one.
func (s *Repairer) Repair(ctx context.Context) (store.RepairResult, error) {
	result, err := s.repair(ctx)
	if err != nil && strings.Contains(err.Error(), "NOPERM") {
		s.process.warnDenied.Do(func() {
			s.Log.WarnContext(ctx,
				"redis refuses the consistency check, missing ACL rights; lost data are not repaired", "err", err)
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
	result := store.RepairResult{Wait: checkPause}
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
	pace := &s.process.crash
	if p.daily {
		pace = &s.process.idle // which must not delay checks after a crash
	}
	began, wait := pace.begin()
	if result.Wait = wait; wait > 0 {
		return result, nil
	}
	result.Complete, err = s.advance(ctx, p)
	result.Wait = pace.end(began)
	result.Repairs = merge(result.Repairs, p.found())
	if errors.Is(err, layout.ErrStale) {
		s.ForgetQueues() // the step is made again
		return result, nil
	}
	if err == nil && result.Complete {
		result.Wait = checkPause
	}
	return result, err
}

// currentPass returns the check in progress, and begins one if it is due. nil: none.
func (s *Repairer) currentPass(ctx context.Context) (*pass, error) {
	server := s.health.RunID(ctx, s.Shard)
	if server == "" {
		return nil, nil
	}
	if s.pass != nil && s.pass.server == server {
		return s.pass, nil
	}
	last, at, err := s.lastCheck(ctx)
	if err != nil {
		return nil, err
	}
	s.pass = nil
	if last != server || time.Since(at) >= checkInterval {
		s.pass = newPass(server, last == server)
	}
	return s.pass, nil
}

func newPass(server string, daily bool) *pass {
	return &pass{server: server, daily: daily, began: time.Now(), count: 1, stepState: stepState{cursor: "0"}}
}

// lastCheck reads for which run of its server the shard was checked last, and when: any process may have done it.
func (s *Repairer) lastCheck(ctx context.Context) (server string, at time.Time, err error) {
	mark, err := s.Client.Get(ctx, s.Keys.Checked).Result()
	if err != nil && !connect.IsNil(err) {
		return "", time.Time{}, connect.MapError(ctx, err)
	}
	server, ms, _ := strings.Cut(mark, " ")
	return server, layout.Time(layout.Int(ms)), nil
}

// advance makes one step of a pass, and ends the pass after the last.
func (s *Repairer) advance(ctx context.Context, p *pass) (complete bool, err error) {
	done, err := s.makeStep(ctx, p)
	if !done || err != nil {
		return false, err
	}
	mark := p.server + " " + strconv.FormatInt(time.Now().UnixMilli(), 10)
	if _, err := s.Eval(ctx, scriptMark, []string{s.Keys.Checked}, []any{mark}); err != nil {
		return false, err // the last step is made again
	}
	level := slog.LevelDebug
	if len(p.total) > 0 {
		level = slog.LevelWarn
	}
	s.Log.Log(ctx, level, "consistency check finished", "shard", s.Index, "repairs", p.total,
		"took", time.Since(p.began))
	s.pass = nil
	return true, nil
}

// makeStep makes the next step, logs what it has repaired, and reports whether it was the last.
func (s *Repairer) makeStep(ctx context.Context, p *pass) (last bool, err error) {
	p.faults, p.ledger = nil, store.Ledger{}
	done, err := steps[p.step](s, ctx, p)
	if len(p.faults) > 0 && !p.audit {
		found := p.found()
		p.total = merge(p.total, found)
		s.Log.WarnContext(ctx, "consistency check repaired data", "shard", s.Index, "repairs",
			found, "jobs", p.examples())
	}
	switch {
	case err != nil || !done:
		return false, err
	case p.step+1 == len(steps):
		return true, nil
	}
	p.step, p.stepState = p.step+1, stepState{cursor: "0"}
	return false, nil
}

// note adds a fault. member is the job's key, empty if it is not about one.
func (p *pass) note(kind store.RepairKind, member, where, detail string) {
	p.faults = append(p.faults, store.Fault{Kind: kind, ID: member, Where: where, Detail: detail, Repaired: !p.audit})
}

// noteEach adds a fault for each of some jobs or queues.
func (p *pass) noteEach(kind store.RepairKind, members []string, where, detail string) {
	for _, m := range members {
		p.note(kind, m, where, detail)
	}
}

// noteAll adds the faults that a script reports (mend.lua).
func (p *pass) noteAll(report []string) {
	for r := range slices.Chunk(report, 4) {
		p.note(store.RepairKind(r[0]), r[1], r[2], r[3])
	}
}

// found counts the faults by kind.
func (p *pass) found() map[store.RepairKind]int {
	var found map[store.RepairKind]int
	for _, f := range p.faults {
		found = merge(found, map[store.RepairKind]int{f.Kind: 1})
	}
	return found
}

// examples returns some of the jobs.
func (p *pass) examples() (jobs []string) {
	for _, f := range p.faults {
		if f.ID != "" && len(jobs) < 5 {
			jobs = append(jobs, f.ID)
		}
	}
	return jobs
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

// A pace runs the steps of one process, of all its shards, one at a time with a pause after each.
type pace struct {
	elapsed func() time.Duration // a monotonic clock
	share   int                  // the length of a pause, in multiples of the step's duration

	mu   sync.Mutex
	next time.Duration // when the next step may begin
	busy bool
}

// begin begins a step, which end ends; or returns how long to wait before it may begin.
func (p *pace) begin() (began, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	began = p.elapsed()
	if wait = p.next - began; wait > 0 {
		return began, wait
	}
	if p.busy {
		return began, turnPause
	}
	p.busy = true
	return began, 0
}

// end ends a step, and returns the pause after it.
func (p *pace) end(began time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.elapsed()
	pause := min((now-began)*time.Duration(p.share), checkPause)
	p.busy, p.next = false, now+pause
	return pause
}

// IsChecked reports whether the shard was checked since its server was started. It asks the server itself: what the
// process knows may be older than a restart.
func (s *Repairer) IsChecked(ctx context.Context) (bool, error) {
	server, err := s.Client.Node(ctx, s.Keys.Jobs)
	if err != nil {
		return false, connect.MapError(ctx, err)
	}
	run, err := connect.RunID(ctx, server)
	if err != nil {
		return false, err
	}
	last, _, err := s.lastCheck(ctx)
	if last != run || err != nil {
		return false, err
	}
	if !s.mu.TryLock() { // a step is in progress
		return false, nil
	}
	defer s.mu.Unlock()
	return s.pass == nil || s.pass.daily, nil
}
