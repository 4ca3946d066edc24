package storetest

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// compareReads compares lists, stats and lanes.
func (p *engineAndModel) compareReads(t *rapid.T) {
	if p.sweeping {
		p.sweep(t)
	}
	p.sameLists(t)
	for _, topic := range []string{"orders", "mails"} {
		p.sameStats(topic)
		p.sameLanes(topic)
		p.samePutLanes(topic)
		p.sameTopicState(topic)
		p.sameHealth(topic)
		p.sameHistory(topic)
	}
	for _, q := range p.queues {
		p.sameQueueState(q)
	}
	p.sameHealth("")
	p.sameHistory(store.AllTopics)
	p.sameTotals()
	p.sameUsage()
}

// sameLists compares a list of each state, and one of all.
func (p *engineAndModel) sameLists(t *rapid.T) {
	f := store.Filter{Namespace: p.namespace}
	for _, state := range append(slices.Clone(states), "") {
		f.Topic = rapid.SampledFrom([]string{"", "orders", "mails"}).Draw(t, "topic")
		f.Oldest = rapid.Bool().Draw(t, "oldest")
		f.Limit = rapid.IntRange(1, 5).Draw(t, "limit")
		f.ScanLimit = rapid.IntRange(0, 3).Draw(t, "scan limit")
		f.Reason, f.Status, f.ErrorClass, f.States = "", 0, "", nil
		if state != "" {
			f.States = []job.State{state}
		}
		if rapid.IntRange(0, 2).Draw(t, "filter") == 0 {
			f.Reason = rapid.SampledFrom([]policy.Reason{"", policy.ReasonGaveUp, policy.ReasonExhausted}).Draw(t,
				"reason")
			f.Status = rapid.SampledFrom([]int{0, 200, 429, 500}).Draw(t, "status")
			f.ErrorClass = rapid.SampledFrom([]policy.ErrorClass{
				"", "", policy.ClassReset, store.AnyError, store.UnknownAnswer,
			}).Draw(t, "class")
		}
		wanted, err := listAll(p.ctx, p.model.shards[0], f)
		p.must(err, "list the model")
		got, err := listAll(p.ctx, p.s.shard(), f)
		p.must(err, "list")
		a, b := idsOfJobs(wanted), idsOfJobs(got)
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) {
			p.Fatalf("list %+v: %v, want %v", f, b, a)
		}
	}
}

func (p *engineAndModel) sameTotals() {
	read := func(shard store.Shard) store.TopicStats {
		total, err := shard.Totals(p.ctx, p.namespace)
		p.must(err, "totals")
		total.Scheduled += total.Ready
		total.Ready, total.OldestDue, total.Bytes = 0, time.Time{}, 0
		return total
	}
	if wanted, got := read(p.model.shards[0]), read(p.s.shard()); wanted != got {
		p.Fatalf("totals:\n  %+v\nwant\n  %+v", got, wanted)
	}
}

// sameUsage compares the usages. The model counts the most that an engine may.
func (p *engineAndModel) sameUsage() {
	read := func(shard store.Shard) store.Usage {
		usage, err := shard.Usage(p.ctx, p.namespace)
		p.must(err, "usage")
		return usage
	}
	most, got := read(p.model.shards[0]), read(p.s.shard())
	least := int64(0)
	for ref, r := range p.model.shards[0].jobs {
		if ref.Namespace == p.namespace && !isInternal(r.job.Topic) && !r.job.State.Ended() {
			least += int64(len(r.job.Body))
		}
	}
	if got.Jobs != most.Jobs || got.Bytes < least || got.Bytes > most.Bytes {
		p.Fatalf("usage: %+v, want at least %d bytes and %+v", got, least, most)
	}
}

func (p *engineAndModel) sameStats(topic string) {
	read := func(shard store.Shard) store.TopicStats {
		rows, err := shard.TopicStats(p.ctx, store.StatsFilter{Namespace: p.namespace, Topics: []string{topic}})
		p.must(err, "stats")
		if len(rows) == 0 {
			return store.TopicStats{Namespace: p.namespace, Topic: topic}
		}
		return rows[0]
	}
	wanted, got := read(p.model.shards[0]), read(p.s.shard())
	if wanted.Registered != got.Registered {
		// One forgot the unused topic before the other, and counts anew. sameTotals compares the sums.
		if unfinished(wanted) != unfinished(got) {
			p.Fatalf("stats of %s: %+v, want %+v", topic, got, wanted)
		}
		return
	}
	if wanted.OldestDue.IsZero() != got.OldestDue.IsZero() || wanted.OldestDue.Sub(got.OldestDue).Abs() > p.slack() {
		p.Fatalf("oldest due of %s: %v, want %v", topic, got.OldestDue, wanted.OldestDue)
	}
	wanted.OldestDue, got.OldestDue, wanted.Bytes, got.Bytes = time.Time{}, time.Time{}, 0, 0
	if wanted != got {
		p.Fatalf("stats of %s:\n  %+v\nwant\n  %+v", topic, got, wanted)
	}
}

func unfinished(s store.TopicStats) int64 { return s.Scheduled + s.Ready + s.Running }

func (p *engineAndModel) sameLanes(topic string) {
	read := func(shard store.Shard) (rows []store.LaneStats) {
		all, err := shard.LaneStats(p.ctx, p.namespace, topic, "", 100)
		p.must(err, "lanes")
		for _, row := range all {
			if row.Scheduled+row.Ready+row.Running > 0 {
				rows = append(rows, row)
			}
		}
		return rows
	}
	wanted, got := read(p.model.shards[0]), read(p.s.shard())
	if !slices.EqualFunc(wanted, got, p.equalLanes) {
		p.Fatalf("lanes of %s: %+v, want %+v", topic, got, wanted)
	}
}

// equalLanes compares the stats of a lane, and the ends of its cooldown roughly.
func (p *engineAndModel) equalLanes(a, b store.LaneStats) bool {
	equal := p.equalTimes(a.CooldownUntil, b.CooldownUntil)
	a.CooldownUntil, b.CooldownUntil = time.Time{}, time.Time{}
	equal = equal && p.equalHealth(a.Health, b.Health)
	a.Health, b.Health = nil, nil
	return equal && a == b
}

// equalHealth compares the health of a lane, and its times roughly. A minute may end between the two clocks.
func (p *engineAndModel) equalHealth(a, b *policy.Health) bool {
	if a == nil || b == nil {
		return a == b
	}
	return p.equalTimes(a.Since, b.Since) && p.equalTimes(a.Last, b.Last) && p.equalTimes(a.Failure.At, b.Failure.At) &&
		a.Attempts == b.Attempts && a.Failed == b.Failed && a.InRow == b.InRow && a.Failure.JobID == b.Failure.JobID &&
		a.Failure.Status == b.Failure.Status && a.Failure.Class == b.Failure.Class &&
		(p.s.Advance == nil || a.Minutes == b.Minutes)
}

// sameHealth compares the lists of lanes with health.
func (p *engineAndModel) sameHealth(topic string) {
	f := store.HealthFilter{Namespace: p.namespace, Topic: topic, Limit: 100}
	wanted, err := p.model.shards[0].ListHealth(p.ctx, f)
	p.must(err, "list the health in the model")
	got, err := p.s.shard().ListHealth(p.ctx, f)
	p.must(err, "list the health")
	// An engine may have swept what has expired.
	now := p.s.now()
	wanted = slices.DeleteFunc(wanted, func(l store.LaneHealth) bool { return l.Health.Expired(now) })
	got = slices.DeleteFunc(got, func(l store.LaneHealth) bool { return l.Health.Expired(now) })
	if !slices.EqualFunc(wanted, got, func(a, b store.LaneHealth) bool { return p.equalHealth(a.Health, b.Health) }) {
		p.Fatalf("health of %s: %+v, want %+v", topic, got, wanted)
	}
}

// equalTimes compares times of the two clocks; a zero time equals only itself.
func (p *engineAndModel) equalTimes(a, b time.Time) bool {
	return a.IsZero() == b.IsZero() && a.Sub(b).Abs() <= p.slack()
}

// sameQueueState compares the state of a queue with unfinished jobs.
func (p *engineAndModel) sameQueueState(q job.Queue) {
	wanted, err := p.model.shards[0].QueueState(p.ctx, q)
	p.must(err, "read the state of the model's queue")
	got, err := p.s.shard().QueueState(p.ctx, q)
	p.must(err, "read the state of a queue")
	if wanted.Scheduled+wanted.Ready+wanted.Running == 0 {
		return
	}
	if !p.equalLanes(wanted.LaneStats, got.LaneStats) || !p.equalTimes(wanted.NextStart, got.NextStart) {
		p.Fatalf("state of %s: %+v, want %+v", q, got, wanted)
	}
	// Jobs without a lease may be put in order only by the next claim, and any of several claimed ones is named.
	if wanted.Running == 1 && wanted.Next != got.Next {
		p.Fatalf("next job of %s: %v, want %v", q, got.Next, wanted.Next)
	}
}

// sameTopicState compares the state of a topic.
func (p *engineAndModel) sameTopicState(topic string) {
	wanted, err := p.model.shards[0].TopicState(p.ctx, p.namespace, topic, p.topicRate())
	p.must(err, "read the state of the model's topic")
	got, err := p.s.router.TopicState(p.ctx, p.namespace, topic, p.topicRate())
	p.must(err, "read the state of a topic")
	if wanted.Running != got.Running || !p.equalTimes(wanted.NextStart, got.NextStart) {
		p.Fatalf("state of topic %s: %+v, want %+v", topic, got, wanted)
	}
}

// sameHistory compares the sums of the hours, and of the minutes: where time is counted from differs.
func (p *engineAndModel) sameHistory(topic string) {
	now := p.s.now()
	read := func(shard store.Shard) (hours, minutes store.HistoryCounts) {
		all, err := shard.ReadHistory(p.ctx, p.namespace, []string{topic})
		p.must(err, "read history")
		recent := all[0].Recent(now)
		return sum(recent.Hours), sum(recent.Minutes)
	}
	wantedHours, wantedMinutes := read(p.model.shards[0])
	hours, minutes := read(p.s.shard())
	if hours != wantedHours || minutes != wantedMinutes {
		p.Fatalf("history of %q: %v and %v, want %v and %v", topic, hours, minutes, wantedHours, wantedMinutes)
	}
}
