package sampler

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/internal/capacity"
)

const (
	// Step is the time between two samples.
	Step = 5 * time.Second
	// History is the time for which samples are kept.
	History = time.Hour
	// Linger is how long a sampler goes on after the last visit, so that those who look at other pages find their
	// charts again.
	Linger = 10 * time.Minute
	// MaxAudiences bounds the samplers.
	MaxAudiences = 64
	// StatsTopics is the number of topics in Stats.
	StatsTopics = 50
)

// Source is the API as its reader may see it.
type Source interface {
	StatsPage(ctx context.Context, o client.PageOptions) (*client.Stats, error)
	Stream(ctx context.Context, o client.StreamOptions) iter.Seq2[*client.StreamEvent, error]
}

// Samplers are the samplers of a process. They are safe for concurrent use.
type Samplers struct {
	// streams counts those that samplers follow: a process serves few, and others need some. Samplers without one have
	// what the counters say.
	streams *capacity.Semaphore
	stats   AnswerCache[*client.Stats]

	mu    sync.Mutex
	all   map[string]*sampler // by audience
	ended bool
}

// New returns Samplers without a sampler. They end when onShutdown calls its function; nil: after their visits only.
func New(onShutdown func(func()) (stop func() bool)) *Samplers {
	s := &Samplers{streams: capacity.ChartStreams.Semaphore(0), all: make(map[string]*sampler)}
	if onShutdown != nil {
		onShutdown(s.end)
	}
	return s
}

// Stats returns the counters of a namespace with its first topics, and when they were requested. The answers are shared
// by all who may read them, and by samplers.
func (s *Samplers) Stats(ctx context.Context, namespace string, source Source) (*client.Stats, time.Time, error) {
	return s.stats.Read(ctx, namespace, func(ctx context.Context) (*client.Stats, error) {
		return source.StatsPage(ctx, client.PageOptions{Limit: StatsTopics})
	})
}

// Visit returns the samples of an audience in the last time, at most History, and keeps its sampler alive. The first
// visit starts it. counted says that the source may read the counters of the namespace.
func (s *Samplers) Visit(
	audience, namespace string, source Source, counted bool, last time.Duration,
) Samples {
	s.mu.Lock()
	one := s.all[audience]
	if one == nil && !s.ended {
		one = s.start(audience, namespace, source, counted)
	}
	if one != nil {
		one.visited = time.Now()
	}
	s.mu.Unlock()
	if one == nil {
		return Samples{}
	}
	return one.samples(last)
}

// start starts the sampler of an audience. s.mu is held.
func (s *Samplers) start(audience, namespace string, source Source, counted bool) *sampler {
	if len(s.all) >= MaxAudiences {
		s.endOldest()
	}
	ctx, cancel := context.WithCancel(context.Background())
	one := &sampler{
		source: source, cancel: cancel, streams: s.streams, holder: capacity.Holder{Namespace: namespace},
	}
	if counted {
		one.readStats = func(ctx context.Context) (*client.Stats, time.Time, error) {
			return s.Stats(ctx, namespace, source)
		}
	}
	one.began(time.Now())
	s.all[audience] = one
	go one.follow(ctx, func() { s.remove(audience, one) })
	go one.run(ctx, func(refused bool) bool { return s.isDone(audience, one, refused) })
	return one
}

// endOldest ends the sampler that was visited longest ago. s.mu is held.
func (s *Samplers) endOldest() {
	var oldest string
	for audience, one := range s.all {
		if s.all[oldest] == nil || one.visited.Before(s.all[oldest].visited) {
			oldest = audience
		}
	}
	s.all[oldest].cancel()
	delete(s.all, oldest)
}

// isDone reports whether a sampler ends, because it is refused or nobody has visited it for Linger.
func (s *Samplers) isDone(audience string, one *sampler, refused bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !refused && time.Since(one.visited) < Linger {
		return false
	}
	s.drop(audience, one)
	return true
}

// remove ends a sampler.
func (s *Samplers) remove(audience string, one *sampler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(audience, one)
}

// drop ends a sampler. s.mu is held.
func (s *Samplers) drop(audience string, one *sampler) {
	one.cancel()
	if s.all[audience] == one {
		delete(s.all, audience)
	}
}

// end ends all samplers. None is started afterwards.
func (s *Samplers) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for audience, one := range s.all {
		s.drop(audience, one)
	}
}
