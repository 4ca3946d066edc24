package obstacles

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/dispatcher/documents"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// search is one search for lanes in trouble.
type search struct {
	*Finder
	filter store.TroubledFilter
	// topicsUntil and lanesUntil are when no more topics, and lanes, are looked at.
	topicsUntil, lanesUntil time.Time

	stored   *documents.PolicySet
	topics   []*topic
	found    []*lane // those that hold jobs back, or may do so by their rate or order
	lookedAt int
	exact    bool
}

// topic is a topic with unfinished jobs.
type topic struct {
	store.TopicStats
	policy *documents.Topic
	// rateUntil is when the topic's rate grants the next start; zero: now.
	rateUntil time.Time
	// settings are those of the lanes that have some, allSettings that no other lane has.
	settings    map[string]store.Lane
	allSettings bool
	visited     bool
	peeked      map[string]bool   // lanes that were looked at ahead of their place
	after       string            // the last lane that was looked at
	ended       bool              // all lanes were looked at
	page        []store.LaneStats // the lanes that are looked at next
}

func (s *search) run(ctx context.Context) (err error) {
	if s.stored, err = s.opts.Policies.Reload(ctx); err != nil {
		return err
	}
	if s.filter.Lane != "" {
		return s.readLane(ctx)
	}
	if s.filter.Code == job.ObstacleFailing {
		return s.readFailing(ctx)
	}
	if err := s.readTopics(ctx); err != nil {
		return err
	}
	slices.SortStableFunc(s.topics, func(a, b *topic) int {
		return cmp.Or(compareBool(a.OpenBreakers > 0, b.OpenBreakers > 0),
			compareBool(a.policy.Resolved.Paused, b.policy.Resolved.Paused), cmp.Compare(b.Ready, a.Ready))
	})
	if err := s.readRates(ctx); err != nil {
		return err
	}
	if err := s.readFailing(ctx); err != nil {
		return err
	}
	for {
		next := s.nextTopics()
		if len(next) == 0 {
			break
		}
		if s.lookedAt >= maxLanes || !time.Now().Before(s.lanesUntil) {
			s.exact = false
			break
		}
		if err := s.visit(ctx, next); err != nil {
			return err
		}
	}
	return s.askStates(ctx)
}

// compareBool orders true before false.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// readTopics reads the counts of topics: first of the paused ones, then page by page.
func (s *search) readTopics(ctx context.Context) error {
	known := make(map[string]bool)
	add := func(all []store.TopicStats) {
		for _, t := range all {
			shown := s.filter.Shown == nil || s.filter.Shown(t.Topic)
			if shown && !known[t.Topic] && t.Scheduled+t.Ready+t.Running > 0 {
				known[t.Topic] = true
				s.topics = append(s.topics, s.newTopic(t))
			}
		}
	}
	if s.filter.Topic != "" {
		all, err := s.opts.Store.TopicStats(ctx,
			store.StatsFilter{Namespace: s.filter.Namespace, Topics: []string{s.filter.Topic}})
		add(all)
		return err
	}
	var paused []string
	for name, t := range s.stored.Values {
		if name.Namespace == s.filter.Namespace && t.Resolved.Paused && !store.IsInternal(name.Name) &&
			len(paused) < topicPage {
			paused = append(paused, name.Name)
		}
	}
	if len(paused) > 0 {
		all, err := s.opts.Store.TopicStats(ctx, store.StatsFilter{Namespace: s.filter.Namespace, Topics: paused})
		if err != nil {
			return err
		}
		add(all)
	}
	for after := ""; ; {
		if !time.Now().Before(s.topicsUntil) {
			s.exact = false
			return nil
		}
		all, err := s.opts.Store.TopicStats(ctx,
			store.StatsFilter{Namespace: s.filter.Namespace, After: after, Limit: topicPage})
		if err != nil {
			return err
		}
		add(all)
		if len(all) < topicPage {
			return nil
		}
		after = all[len(all)-1].Topic
	}
}

func (s *search) newTopic(counts store.TopicStats) *topic {
	return &topic{
		TopicStats: counts, policy: s.opts.Policies.Get(s.filter.Namespace, counts.Topic),
		peeked: make(map[string]bool),
	}
}

// readFailing looks at the lanes whose receivers fail, ahead of their place, also at those without unfinished jobs.
func (s *search) readFailing(ctx context.Context) error {
	now := time.Now()
	all, err := s.opts.Store.ListHealth(ctx, store.HealthFilter{
		Namespace: s.filter.Namespace, Topic: s.filter.Topic, FailingAt: now, Limit: store.MaxBatch,
	})
	if err != nil {
		return err
	}
	s.exact = s.exact && len(all) < store.MaxBatch
	all = slices.DeleteFunc(all, func(l store.LaneHealth) bool {
		name := l.Queue.Topic
		return store.IsInternal(name) || s.filter.Shown != nil && !s.filter.Shown(name)
	})
	if len(all) == 0 {
		return nil
	}
	if len(all) > settingsPage {
		all, s.exact = all[:settingsPage], false
	}
	topics := make(map[string]*topic)
	for _, t := range s.topics {
		topics[t.Topic] = t
	}
	queues, states := make([]job.Queue, len(all)), make(map[job.Queue]*store.LaneStats)
	for i, l := range all {
		queues[i], states[l.Queue] = l.Queue, new(store.LaneStats)
	}
	settings, err := s.opts.Store.GetLanes(ctx, queues)
	if err != nil {
		return err
	}
	err = inParallel(queues, func(q job.Queue) error {
		state, err := s.opts.Store.QueueState(ctx, q)
		*states[q] = state.LaneStats
		return err
	})
	if err != nil {
		return err
	}
	for i, q := range queues {
		t := topics[q.Topic]
		if t == nil {
			t = s.newTopic(store.TopicStats{Topic: q.Topic})
		}
		t.peeked[q.Lane] = true
		s.found = append(s.found, s.judge(t, settings[i], *states[q]))
	}
	return nil
}

// readRates finds out which topics with due jobs have used up their rate.
func (s *search) readRates(ctx context.Context) error {
	var rated []*topic
	for _, t := range s.topics {
		if t.Ready > 0 && t.policy.Resolved.Rate.Limited() {
			rated = append(rated, t)
		}
	}
	if len(rated) > maxStates {
		rated, s.exact = rated[:maxStates], false
	}
	return inParallel(rated, func(t *topic) (err error) {
		t.rateUntil, err = s.opts.Store.NextStart(ctx, s.filter.Namespace, t.Topic, t.policy.Resolved.Rate)
		return err
	})
}

// nextTopics returns the topics whose next lanes are looked at.
func (s *search) nextTopics() (next []*topic) {
	for _, t := range s.topics {
		if !t.ended && len(next) < atOnce {
			next = append(next, t)
		}
	}
	return next
}

// visit looks at a page of lanes of each topic.
func (s *search) visit(ctx context.Context, topics []*topic) error {
	err := inParallel(topics, func(t *topic) (err error) {
		t.page, err = s.readLanes(ctx, t)
		return err
	})
	for _, t := range topics {
		for _, counts := range t.page {
			if l := s.judge(t, t.settings[counts.Lane], counts); len(l.Reasons) > 0 || l.hasState() {
				s.found = append(s.found, l)
			}
		}
	}
	return err
}

// readLanes reads the counts of the next lanes of a topic, and their settings. It may be called for several topics at
// once.
func (s *search) readLanes(ctx context.Context, t *topic) ([]store.LaneStats, error) {
	lanes, err := s.opts.Store.LaneStats(ctx, s.filter.Namespace, t.Topic, t.after, lanePage)
	if err != nil {
		return nil, err
	}
	if len(lanes) < lanePage {
		t.ended = true
	} else {
		t.after = lanes[len(lanes)-1].Lane
	}
	first := !t.visited
	if first {
		t.visited, t.settings = true, make(map[string]store.Lane)
		if err := s.readSettings(ctx, t); err != nil {
			return nil, err
		}
	}
	if !t.allSettings && len(lanes) > 0 {
		queues := make([]job.Queue, len(lanes))
		for i, l := range lanes {
			queues[i] = s.queue(t, l.Lane)
		}
		found, err := s.opts.Store.GetLanes(ctx, queues)
		if err != nil {
			return nil, err
		}
		for _, l := range found {
			t.settings[l.Queue.Lane] = l
		}
	}
	lanes = slices.DeleteFunc(lanes, func(l store.LaneStats) bool { return t.peeked[l.Lane] })
	if first && !t.ended {
		return s.peek(ctx, t, lanes)
	}
	return lanes, nil
}

// readSettings reads the first lanes of a topic that have settings. Only topics with a stored policy have such lanes.
func (s *search) readSettings(ctx context.Context, t *topic) error {
	if s.stored.Get(s.filter.Namespace, t.Topic) == nil {
		t.allSettings = true
		return nil
	}
	lanes, err := s.opts.Store.ListLanes(ctx, s.filter.Namespace, t.Topic, "", settingsPage)
	if err != nil {
		return err
	}
	t.allSettings = len(lanes) < settingsPage
	for _, l := range lanes {
		t.settings[l.Queue.Lane] = l
	}
	return nil
}

// peek looks at paused lanes ahead of their place, in a topic with more lanes than a page.
func (s *search) peek(ctx context.Context, t *topic, lanes []store.LaneStats) ([]store.LaneStats, error) {
	paused := 0
	for name, l := range t.settings {
		if !l.Settings.Paused || name <= t.after || t.peeked[name] || paused == maxStates {
			continue
		}
		state, err := s.opts.Store.QueueState(ctx, s.queue(t, name))
		if err != nil {
			return nil, err
		}
		t.peeked[name] = true
		paused++
		lanes = append(lanes, state.LaneStats)
	}
	return lanes, nil
}

func (s *search) queue(t *topic, lane string) job.Queue {
	return job.Queue{Namespace: s.filter.Namespace, Topic: t.Topic, Lane: lane}
}

// readLane looks at the lane that the filter names. It reads what concerns that only, so that its answer needs no
// budget.
func (s *search) readLane(ctx context.Context) error {
	if s.filter.Shown != nil && !s.filter.Shown(s.filter.Topic) {
		return nil
	}
	t := s.newTopic(store.TopicStats{Topic: s.filter.Topic})
	q := s.queue(t, s.filter.Lane)
	state, err := s.opts.Store.QueueState(ctx, q)
	if err != nil || state.Scheduled+state.Ready+state.Running == 0 && !state.Health.Failing(time.Now()) {
		return err
	}
	settings, err := s.settingsOf(ctx, q)
	if err != nil {
		return err
	}
	t.Ready = state.Ready
	s.topics = []*topic{t}
	if err := s.readRates(ctx); err != nil {
		return err
	}
	l := s.judge(t, settings, state.LaneStats)
	if l.hasState() {
		err = s.addOfState(ctx, l, &state)
	}
	s.found = append(s.found, l)
	return err
}

// askStates finds out which lanes hold jobs back by their rate or their order: first of the undecided ones, then of
// those with the most due jobs.
func (s *search) askStates(ctx context.Context) error {
	var asked []*lane
	for _, l := range s.found {
		if l.hasState() {
			asked = append(asked, l)
		}
	}
	slices.SortFunc(asked, func(a, b *lane) int {
		return cmp.Or(compareBool(a.isUndecided(), b.isUndecided()), compare(a, b))
	})
	if len(asked) > maxStates {
		s.exact = s.exact && !asked[maxStates].isUndecided()
		asked = asked[:maxStates]
	}
	return inParallel(asked, func(l *lane) error {
		state, err := s.opts.Store.QueueState(ctx, l.Queue)
		if err != nil {
			return err
		}
		return s.addOfState(ctx, l, &state)
	})
}
