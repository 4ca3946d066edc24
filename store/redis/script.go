package redis

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by it
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// A script is one Lua script: its text and the name that Redis gives it.
type script struct {
	name, text, sha string
}

//go:embed scripts
var scriptFiles embed.FS

// shared are the numbers that scripts have in common with this package.
var shared = fmt.Sprintf("local NEVER, READY_MAX, RENOTIFY, REPLY_TTL, BREAKER_TTL, COUNTED_STARTS, FREE_LOSSES = %d, %d, %d, %d, %d, %d, %d\n"+
	"local FORM, TAG_CREATED, TAG_EXPIRY, TAG_MAX_AGE = %d, %d, %d, %d\n",
	layout.Never, carryReady, store.RenotifyAfter.Milliseconds(), int(store.TokenTTL.Seconds()), store.BreakerRetention.Milliseconds(),
	store.CountedStarts, policy.FreeLosses, layout.RecordFormat, layout.TagCreated, layout.TagExpiry, layout.TagMaxAge)

// newScript reads a script from the folder scripts.
func newScript(name string, include ...string) *script {
	return textScript(name, read(name), include...)
}

// textScript makes a script of its text. Before it stand the shared numbers, prelude.lua, and the named files of the folder
// include, in their order.
func textScript(name, text string, include ...string) *script {
	var before strings.Builder
	before.WriteString(shared + read("include/prelude"))
	for file := range strings.FieldsSeq(strings.Join(include, " ")) {
		before.WriteString(read("include/" + file))
	}
	text = before.String() + text
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return &script{name: name, text: text, sha: hex.EncodeToString(sum[:])}
}

func read(name string) string {
	text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(fmt.Sprintf("redis: read a script: %v", err))
	}
	return string(text)
}

// What scripts include: those that read jobs, those that move jobs between the sets of their queue, and those that end jobs.
const (
	readingJobs = "record window keys"
	movingJobs  = readingJobs + " limits run attempts throttle queue close"
	endingJobs  = movingJobs + " retention"
)

var (
	scriptGet     = newScript("get", readingJobs)
	scriptKnown   = newScript("known", readingJobs)
	scriptAgenda  = newScript("agenda", readingJobs)
	scriptStep    = newScript("step", readingJobs)
	scriptOverdue = newScript("overdue", readingJobs, "run")

	scriptInsert  = newScript("insert", movingJobs)
	scriptClaim   = newScript("claim", movingJobs, "grant")
	scriptReplace = newScript("replace", movingJobs, "reply")
	scriptRevive  = newScript("revive", movingJobs)
	scriptPutLane = newScript("put_lane", movingJobs)
	scriptAlarm   = newScript("alarm", movingJobs, "outbox")
	scriptRing    = newScript("ring", movingJobs)
	scriptExpire  = newScript("expire", movingJobs)
	scriptRescore = newScript("rescore", movingJobs, "clock_steps")

	scriptSettle = newScript("settle", endingJobs, "outbox")
	scriptCarry  = newScript("carry", endingJobs)
	scriptCancel = newScript("cancel", endingJobs, "reply")
	scriptPurge  = newScript("purge", endingJobs)
	scriptSweep  = newScript("sweep", endingJobs)

	scriptRepairJobs   = newScript("repair_jobs", movingJobs, "mend")
	scriptRepairQueues = newScript("repair_queues", movingJobs, "mend")
	scriptRepairEnded  = newScript("repair_ended", movingJobs, "mend")

	// These name their keys themselves.
	scriptIntern       = newScript("intern")
	scriptForget       = newScript("forget")
	scriptCopyLimits   = newScript("copy_limits")
	scriptPutDocument  = newScript("put_document")
	scriptLead         = newScript("lead")
	scriptPage         = newScript("page", "record read_without_body")
	scriptPeek         = newScript("peek", "record read_without_body")
	scriptPermit       = newScript("permit", "window grant clock_steps")
	scriptThrottles    = newScript("throttles")
	scriptOpenBreakers = newScript("open_breakers")
	scriptWaiting      = newScript("waiting")

	scriptRepairScan      = newScript("repair_scan", "record")
	scriptRepairIndex     = newScript("repair_index")
	scriptRepairLeftovers = newScript("repair_leftovers")
	scriptRepairOutbox    = newScript("repair_outbox")
	scriptRepairAgenda    = newScript("repair_agenda")
	scriptRepairCounts    = newScript("repair_counts")
	scriptRepairBytes     = newScript("repair_bytes")
)

// A runner runs scripts.
type runner struct {
	client   *connect.Client
	log      *slog.Logger
	defaults string // terms of a topic without a policy of its own
}

// eval runs a script by its name, and by its text when the server does not know it.
func (r *runner) eval(ctx context.Context, s *script, keys []string, args []any) (any, error) {
	reply, err := r.client.EvalSha(ctx, s.sha, keys, args...).Result()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = r.client.Eval(ctx, s.text, keys, args...).Result()
	}
	return reply, scriptError(ctx, err)
}

// evalDurable is eval for a change that is promised to a caller: it waits for the client's Wait.
func (r *runner) evalDurable(ctx context.Context, s *script, keys []string, args []any) (any, *job.Durability, error) {
	if !r.client.Waits() {
		reply, err := r.eval(ctx, s, keys, args)
		return reply, nil, err
	}
	reply, reached, err := r.client.WriteDurably(ctx, keys[0], func(p redis.Pipeliner) *redis.Cmd {
		return p.EvalSha(ctx, s.sha, keys, args...)
	})
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, reached, err = r.client.WriteDurably(ctx, keys[0], func(p redis.Pipeliner) *redis.Cmd {
			return p.Eval(ctx, s.text, keys, args...)
		})
	}
	return reply, reached, scriptError(ctx, err)
}

// errStale reports that a queue's number belongs to another queue now, because the database was emptied.
var errStale = errors.New("redis: a queue's number is stale")

// scriptError maps a script's error.
func scriptError(ctx context.Context, err error) error {
	switch {
	case err == nil || connect.IsNil(err):
		return nil
	case redis.HasErrorPrefix(err, "STALE"):
		return errStale
	default:
		return connect.MapError(ctx, err) //nolint:wrapcheck // it is the mapping
	}
}

// A call is a run of a script that includes keys.lua.
type call struct {
	script *script
	keys   []string
	args   []any
}

// newCall lays out a call's keys and arguments as keys.lua reads them. replyKey is where the call's reply is kept; a call
// without one names a key that nothing is under. Queues must not be nil; their topics need not be named in topics.
func (r *runner) newCall(s *shard, script *script, replyKey string, queues []*layout.Queue, topics []*layout.Topic, rest int) *call {
	all := make([]*layout.Topic, 0, len(topics)+1)
	position := make(map[*layout.Topic]int, len(topics)+1)
	name := func(t *layout.Topic) int {
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
	keys := make([]string, 0, 21+3*len(queues)+5+2)
	keys = append(append(keys, s.keys.Common...), replyKey)
	args := make([]any, 3, 3+3*len(queues)+1+rest)
	for _, q := range queues {
		keys = append(keys, q.Due, q.Ready, q.Held)
		args = append(args, q.Number, name(q.TopicKeys), q.Name)
	}
	for _, t := range all {
		keys = append(keys, t.Stats, t.Done, t.Dead, t.Cancelled, t.Open)
		args = append(args, t.Name)
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
	return reply, scriptError(ctx, err)
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
		return layout.Int(v)
	default:
		return 0
	}
}
