package queue

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/settings"
	"github.com/ringback/ringback/store/redis/shard"
)

// Claim claims jobs in one script.
func (s *Queue) Claim(ctx context.Context, token store.Token, request store.ClaimRequest) (store.ClaimResult, error) {
	var claimed store.ClaimResult
	err := s.RetryStale(func() error {
		c, err := s.claim(ctx, token, &request, "")
		if err != nil {
			return err
		}
		reply, err := s.Run(ctx, c.Call)
		if err != nil {
			return err
		}
		claimed, err = s.readClaim(c, reply)
		return err
	})
	if err != nil {
		return store.ClaimResult{}, fmt.Errorf("claim: %w", err)
	}
	return claimed, nil
}

// A claim is a call of claim.lua, with what its reply is parsed with.
type claim struct {
	*layout.Call
	token  store.Token
	wants  []store.QueueClaim
	queues []*layout.Queue // in the script's order
	// each wanted queue's position among queues, from 1; 0: the shard does not have it
	at            []int
	unknownQueues map[job.Queue]*store.QueueStatus // those that the shard does not have
}

// claim prepares the script. Two QueueClaims of one queue are one, with the larger bounds. after is the key of the
// reply of the settlement that precedes the claim in the same round trip; empty: none.
func (s *Queue) claim(
	ctx context.Context, token store.Token, request *store.ClaimRequest, after string,
) (*claim, error) {
	shard.CheckBatchSize(len(request.Queues))
	shard.CheckBatchSize(request.Max)
	names, position := shard.QueuesOf(request.Queues, func(w *store.QueueClaim) job.Queue { return w.Queue })
	queues, known, err := s.Find(ctx, names)
	if err != nil {
		return nil, err
	}
	c := &claim{token: token, wants: request.Queues, queues: queues, at: make([]int, len(request.Queues))}
	most, timeout, lanes := make([]int, len(c.queues)), make([]int64, len(c.queues)), make([]int64, len(c.queues))
	ahead, deliver := make([]int, len(c.queues)), make([]int, len(c.queues))
	owner, lanesKnown := store.LeaseOwner(""), false
	for i, w := range request.Queues {
		c.at[i] = known[position[i]-1]
		if k := c.at[i] - 1; k >= 0 {
			most[k] = min(max(most[k], w.Max), store.MaxBatch)
			timeout[k] = max(timeout[k], layout.Millis(w.Timeout))
			if ahead[k] = max(ahead[k], w.Ahead); ahead[k] > 0 {
				owner = token.Owner()
			}
			deliver[k] = layout.FormatDeliver(w.Deliver)
			lanes[k] = w.LaneRevision
			lanesKnown = lanesKnown || w.LaneRevision != 0
		}
	}
	if c.unknownQueues, err = s.findUnknownQueues(ctx, request.Queues, c.at); err != nil {
		return nil, err
	}
	c.Call = s.NewCall(scriptClaim, s.Keys.Reply(string(token), "c"), c.queues, nil, 7+5*len(c.queues))
	c.Keys = append(c.Keys, s.Keys.LaneSettings)
	follows := 0
	if after != "" {
		c.Keys, follows = append(c.Keys, after), 1
	}
	c.Add(string(token), max(0, request.Max), max(0, request.MaxBytes), layout.Millis(request.Margin), follows,
		layout.Millis(max(0, request.Slack)), string(owner))
	for i := range c.queues {
		c.Add(most[i], timeout[i], deliver[i])
	}
	if owner != "" {
		for _, n := range ahead {
			c.Add(n)
		}
	}
	if lanesKnown {
		for _, revision := range lanes {
			c.Add(revision)
		}
	}
	return c, nil
}

// findUnknownQueues returns the status of wanted queues that the shard does not have: they have no jobs, but may have
// settings.
func (s *Queue) findUnknownQueues(
	ctx context.Context, wants []store.QueueClaim, at []int,
) (map[job.Queue]*store.QueueStatus, error) {
	var names []job.Queue
	var topics []string
	for i, w := range wants {
		if at[i] == 0 {
			names, topics = append(names, w.Queue), append(topics, layout.TopicName(w.Queue.Namespace, w.Queue.Topic))
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	lanes := make([]string, len(names))
	for i, q := range names {
		lanes[i] = q.String()
	}
	pipe := s.Client.Pipeline()
	read := []*redis.SliceCmd{
		pipe.HMGet(ctx, s.Keys.LaneSettings, lanes...), pipe.HMGet(ctx, s.Keys.LaneLimits, lanes...),
		pipe.HMGet(ctx, s.Keys.Limits, topics...),
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, connect.MapError(ctx, err)
	}
	stored, limits, topicLimits := layout.Strs(read[0].Val()), layout.Strs(read[1].Val()), layout.Strs(read[2].Val())
	left := make(map[job.Queue]*store.QueueStatus, len(names))
	for i, q := range names {
		left[q] = &store.QueueStatus{
			Queue: q, Blocked: layout.IsPaused(limits[i]) || layout.IsPaused(cmp.Or(topicLimits[i], s.Defaults)),
			LaneDocument: new(settings.ParseLane(store.LaneKey(q), stored[i])),
		}
	}
	return left, nil
}

// readClaim parses the script's reply.
func (s *Queue) readClaim(c *claim, reply any) (store.ClaimResult, error) {
	answer := layout.List(reply)
	if len(answer) != 5 {
		return store.ClaimResult{}, scriptClaim.Malformed()
	}
	left, err := c.left(layout.Strs(answer[2]), layout.Strs(answer[4]))
	if err != nil {
		return store.ClaimResult{}, err
	}
	jobs, err := s.readJobs(scriptClaim, c.token, layout.Num(answer[0]), layout.List(answer[3]), c.queues)
	return store.ClaimResult{Jobs: jobs, Revision: layout.Num(answer[1]), Queues: left}, err
}

// readJobs parses the jobs that a script has claimed at now: for each the position of its queue, member, record, run,
// ms left of its lease.
func (s *Queue) readJobs(
	from *layout.Script, token store.Token, now int64, parts []any, queues []*layout.Queue,
) (jobs []store.ClaimedJob, err error) {
	if len(parts)%5 != 0 {
		return nil, from.Malformed()
	}
	if len(parts) > 0 {
		jobs = make([]store.ClaimedJob, 0, len(parts)/5)
	}
	for i := 0; i < len(parts); i += 5 {
		k := int(layout.Num(parts[i]))
		if k < 1 || k > len(queues) {
			return nil, from.Malformed()
		}
		jobs = s.appendJob(jobs, token, now, parts[i+1:i+5], queues[k-1].Queue)
	}
	return jobs, nil
}

// appendJob parses a job of a queue that was claimed at now: member, record, run, ms left of its lease. A job that
// cannot be parsed is left out, so that it stops no other: its lease expires.
func (s *Queue) appendJob(
	jobs []store.ClaimedJob, token store.Token, now int64, parts []any, q job.Queue,
) []store.ClaimedJob {
	stored, err := layout.ParseJob(layout.Str(parts[0]), layout.Str(parts[1]), layout.Str(parts[2]), false, q)
	if err != nil {
		s.Unreadable.Error("claimed job unreadable, leaving it to its lease", "job", layout.Str(parts[0]), "err", err)
		return jobs
	}
	r := &stored.Run
	return append(jobs, store.ClaimedJob{
		Job: stored.Job(now), Lease: token, LeaseFor: time.Duration(layout.Num(parts[3])) * time.Millisecond,
		Age:   time.Duration(now-r.FirstDue) * time.Millisecond,
		Late:  time.Duration(max(0, r.Finished-r.Due)) * time.Millisecond,
		Rated: r.IsRated(), Probe: r.IsProbe(),
	})
}

// left reads the status of each queue: its letters, and the settings of lanes that the caller does not know.
func (c *claim) left(lines, lanes []string) ([]store.QueueStatus, error) {
	if len(lines) != len(c.queues) || len(lanes)%2 != 0 {
		return nil, scriptClaim.Malformed()
	}
	changed := make(map[int]*store.Document, len(lanes)/2)
	for i := 0; i < len(lanes); i += 2 {
		k := int(layout.Num(lanes[i]))
		if k < 1 || k > len(c.queues) {
			return nil, scriptClaim.Malformed()
		}
		changed[k] = new(settings.ParseLane(store.LaneKey(c.queues[k-1].Queue), lanes[i+1]))
	}
	all := make([]store.QueueStatus, len(c.wants))
	for i, w := range c.wants {
		left := store.QueueStatus{Queue: w.Queue}
		if k := c.at[i]; k > 0 {
			line := lines[k-1]
			left.More, left.Blocked = strings.Contains(line, "m"), strings.Contains(line, "b")
			left.BreakerOpen, left.LaneDocument = strings.Contains(line, "o"), changed[k]
		} else if unknown := c.unknownQueues[w.Queue]; unknown != nil {
			left = *unknown
			if left.LaneDocument.Revision == w.LaneRevision {
				left.LaneDocument = nil
			}
		}
		all[i] = left
	}
	return all, nil
}
