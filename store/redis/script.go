package redis

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by it
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A script is one Lua script: its text and the name that Redis gives it.
type script struct {
	name, text, sha string
}

func newScript(name, text string) *script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return &script{name: name, text: text, sha: hex.EncodeToString(sum[:])}
}

var (
	//go:embed scripts/window.lua
	windowText string
	//go:embed scripts/grant.lua
	grantText string
	//go:embed scripts/back.lua
	backText string
	//go:embed scripts/lib.lua
	libText string
	//go:embed scripts/insert.lua
	insertText string
	//go:embed scripts/claim.lua
	claimText string
	//go:embed scripts/settle.lua
	settleText string
	//go:embed scripts/agenda.lua
	agendaText string
	//go:embed scripts/carry.lua
	carryText string
	//go:embed scripts/cancel.lua
	cancelText string
	//go:embed scripts/edit.lua
	editText string
	//go:embed scripts/revive.lua
	reviveText string
	//go:embed scripts/purge.lua
	purgeText string
	//go:embed scripts/lane.lua
	putLaneText string
	//go:embed scripts/permit.lua
	permitText string
	//go:embed scripts/alarm.lua
	alarmText string
	//go:embed scripts/gates.lua
	gatesText string
	//go:embed scripts/open.lua
	openText string
	//go:embed scripts/get.lua
	getText string
	//go:embed scripts/known.lua
	knownText string
	//go:embed scripts/ring.lua
	ringText string
	//go:embed scripts/sweep.lua
	sweepText string
	//go:embed scripts/forget.lua
	forgetText string
	//go:embed scripts/intern.lua
	internText string
	//go:embed scripts/terms.lua
	copyText string
	//go:embed scripts/put.lua
	putText string
	//go:embed scripts/lead.lua
	leadText string
	//go:embed scripts/bare.lua
	bareText string
	//go:embed scripts/page.lua
	pageText string
	//go:embed scripts/peek.lua
	peekText string
	//go:embed scripts/overdue.lua
	overdueText string
	//go:embed scripts/expire.lua
	expireText string
	//go:embed scripts/waiting.lua
	waitingText string
	//go:embed scripts/mend.lua
	mendText string
	//go:embed scripts/repair_scan.lua
	repairScanText string
	//go:embed scripts/repair_jobs.lua
	repairJobsText string
	//go:embed scripts/repair_queues.lua
	repairQueuesText string
	//go:embed scripts/repair_ended.lua
	repairEndedText string
	//go:embed scripts/repair_index.lua
	repairIndexText string
	//go:embed scripts/repair_leftovers.lua
	repairLeftoversText string
	//go:embed scripts/repair_outbox.lua
	repairOutboxText string
	//go:embed scripts/repair_agenda.lua
	repairAgendaText string
	//go:embed scripts/repair_counts.lua
	repairCountsText string
	//go:embed scripts/repair_bytes.lua
	repairBytesText string
	//go:embed scripts/clock.lua
	clockText string
	//go:embed scripts/step.lua
	stepText string
	//go:embed scripts/rescore.lua
	rescoreText string
)

var (
	lib = windowText + libText

	scriptInsert = newScript("insert", lib+insertText)
	scriptClaim  = newScript("claim", lib+grantText+claimText)
	scriptSettle = newScript("settle", lib+backText+settleText)
	scriptAgenda = newScript("agenda", lib+agendaText)
	scriptCarry  = newScript("carry", lib+carryText)
	scriptCancel = newScript("cancel", lib+cancelText)
	scriptEdit   = newScript("edit", lib+editText)
	scriptRevive = newScript("revive", lib+reviveText)
	scriptPurge  = newScript("purge", lib+purgeText)
	scriptLane   = newScript("lane", lib+putLaneText)
	scriptAlarm  = newScript("alarm", lib+alarmText)
	scriptGet    = newScript("get", lib+getText)
	scriptKnown  = newScript("known", lib+knownText)
	scriptRing   = newScript("ring", lib+ringText)
	scriptSweep  = newScript("sweep", lib+sweepText)
	scriptForget = newScript("forget", forgetText)

	scriptRepairJobs   = newScript("repair_jobs", lib+mendText+repairJobsText)
	scriptRepairQueues = newScript("repair_queues", lib+mendText+repairQueuesText)
	scriptRepairEnded  = newScript("repair_ended", lib+mendText+repairEndedText)
	scriptStep         = newScript("step", lib+stepText)
	scriptRescore      = newScript("rescore", lib+clockText+rescoreText)
	scriptOverdue      = newScript("overdue", lib+overdueText)
	scriptExpire       = newScript("expire", lib+expireText)

	// These name their keys themselves.
	scriptIntern = newScript("intern", internText)
	scriptTerms  = newScript("terms", copyText)
	scriptPut    = newScript("put", putText)
	scriptLead   = newScript("lead", leadText)
	scriptPage   = newScript("page", bareText+pageText)
	scriptPeek   = newScript("peek", bareText+peekText)
	scriptPermit = newScript("permit", windowText+grantText+backText+clockText+permitText)
	scriptGates  = newScript("gates", gatesText)
	scriptOpen   = newScript("open", openText)

	scriptWaiting         = newScript("waiting", waitingText)
	scriptRepairScan      = newScript("repair_scan", repairScanText)
	scriptRepairIndex     = newScript("repair_index", repairIndexText)
	scriptRepairLeftovers = newScript("repair_leftovers", repairLeftoversText)
	scriptRepairOutbox    = newScript("repair_outbox", repairOutboxText)
	scriptRepairAgenda    = newScript("repair_agenda", repairAgendaText)
	scriptRepairCounts    = newScript("repair_counts", repairCountsText)
	scriptRepairBytes     = newScript("repair_bytes", repairBytesText)
)

// A runner runs scripts.
type runner struct {
	client   redis.UniversalClient
	wait     Wait
	unwaited sync.Once // it was told that the server cannot be waited for
	log      *slog.Logger
	defaults string // terms of a topic without a policy of its own
}

// eval runs a script by its name, and by its text when the server does not know it.
func (r *runner) eval(ctx context.Context, s *script, keys []string, args []any) (any, error) {
	reply, err := r.client.EvalSha(ctx, s.sha, keys, args...).Result()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = r.client.Eval(ctx, s.text, keys, args...).Result()
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fault(ctx, err)
	}
	return reply, nil
}

// A call is a run of a script that begins with lib.
type call struct {
	script *script
	keys   []string
	args   []any
}

// newCall lays a call's keys and arguments out as lib reads them. memory is the key of the call's token; a call
// without one names a key that nothing is under. Queues must not be nil; their topics need not be named in topics.
func (r *runner) newCall(s *part, script *script, memory string, queues []*queue, topics []*topic, rest int) *call {
	all := make([]*topic, 0, len(topics)+1)
	position := make(map[*topic]int, len(topics)+1)
	name := func(t *topic) int {
		at, ok := position[t]
		if !ok {
			all = append(all, t)
			at = len(all)
			position[t] = at
		}
		return at
	}
	for _, t := range topics {
		name(t)
	}
	keys := make([]string, 0, 20+3*len(queues)+5+2)
	keys = append(append(keys, s.common...), memory)
	args := make([]any, 3, 3+3*len(queues)+1+rest)
	for _, q := range queues {
		keys = append(keys, q.due, q.ready, q.held)
		args = append(args, q.number, name(q.topic), q.name)
	}
	for _, t := range all {
		keys = append(keys, t.stats, t.done, t.dead, t.off, t.open)
		args = append(args, t.name)
	}
	args[0], args[1], args[2] = len(queues), len(all), r.defaults
	return &call{script: script, keys: keys, args: args}
}

func (c *call) add(args ...any) { c.args = append(c.args, args...) }

// do runs one call.
func (r *runner) do(ctx context.Context, c *call) (any, error) {
	return r.eval(ctx, c.script, c.keys, c.args)
}

// both runs two calls in one round trip, the second after the first. A server that knows the second's script only
// answers EARLY to it, since the first has not run: then it is sent again.
func (r *runner) both(ctx context.Context, first, second *call) (a, b any, err error) {
	pipe := r.client.Pipeline()
	one := pipe.EvalSha(ctx, first.script.sha, first.keys, first.args...)
	two := pipe.EvalSha(ctx, second.script.sha, second.keys, second.args...)
	_, _ = pipe.Exec(ctx) // the error is that of a command, and read from it
	if a, err = r.again(ctx, first, one); err != nil {
		return nil, nil, err
	}
	if b, err = r.again(ctx, second, two); err != nil {
		return nil, nil, err
	}
	if b == "EARLY" {
		b, err = r.do(ctx, second)
	}
	return a, b, err
}

// again sends a call with its script's text when the server did not know it.
func (r *runner) again(ctx context.Context, c *call, cmd *redis.Cmd) (any, error) {
	reply, err := cmd.Result()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = r.client.Eval(ctx, c.script.text, c.keys, c.args...).Result()
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fault(ctx, err)
	}
	return reply, nil
}

func malformed(s *script) error { return fmt.Errorf("redis: script %s: malformed reply", s.name) }

// list reads an array of a reply.
func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// str reads a string of a reply; what is nil is empty.
func str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	default:
		return ""
	}
}

func strs(v any) []string {
	l := list(v)
	out := make([]string, len(l))
	for i := range l {
		out[i] = str(l[i])
	}
	return out
}

// num reads a whole number of a reply, sent as a number or as digits.
func num(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		return digits(v)
	default:
		return 0
	}
}

// digits reads a whole number; what is none is zero.
func digits(s string) int64 {
	if s == "" {
		return 0 // most runs have no status yet, and an error takes its time
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(s, 64)
	return int64(f)
}
