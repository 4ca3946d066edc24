package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hibiken/asynq"
)

const (
	// taskType is short: it is stored with each task.
	taskType = "callback"
	// tunedPoll is how often asynq looks for work when its lateness is what matters: its own standards are 1 s, and 5 s for
	// tasks that are scheduled.
	tunedPoll = 10 * time.Millisecond
)

// An asynqPeer enqueues and works tasks with asynq. A task carries its body; its receiver is the handler's, and costs it
// nothing to store. Nothing is kept of tasks that were done, which is asynq's standard and its quickest setting.
type asynqPeer struct {
	client *asynq.Client
	store  string
}

func asAsynq() (func(context.Context, order) (answer, error), error) {
	p := &asynqPeer{}
	return func(ctx context.Context, o order) (answer, error) {
		if p.client == nil {
			p.store = o.Store
			p.client = asynq.NewClient(p.redis(o.Concurrency))
		}
		switch o.Do {
		case "fill":
			return answer{}, p.fill(ctx, o)
		case "start":
			return answer{}, p.work(o)
		case "pace":
			return answer{}, p.pace(ctx, o)
		}
		return answer{}, fmt.Errorf("asynq cannot %s", o.Do)
	}, nil
}

// redis gives each worker a connection, and a few more for the rest; the standard is ten a processor.
func (p *asynqPeer) redis(workers int) asynq.RedisClientOpt {
	return asynq.RedisClientOpt{Addr: p.store, PoolSize: workers + 16}
}

// fill enqueues jobs as quickly as asynq can, which has no call for many: due at once, or after o.Seconds.
func (p *asynqPeer) fill(ctx context.Context, o order) error {
	payload := body(time.Now())
	if o.Body != "" {
		payload = []byte(o.Body)
	}
	var options []asynq.Option
	if o.Seconds > 0 {
		options = append(options, asynq.ProcessIn(time.Duration(o.Seconds)*time.Second))
	}
	return spread(ctx, o.Concurrency, o.Jobs, func(ctx context.Context, _ int) error {
		_, err := p.client.EnqueueContext(ctx, asynq.NewTask(taskType, payload), options...)
		return err //nolint:wrapcheck // says what it is
	})
}

// work starts the server, without a log.
func (p *asynqPeer) work(o order) error {
	config := asynq.Config{Concurrency: o.Concurrency, LogLevel: asynq.FatalLevel}
	if o.Tuned {
		config.TaskCheckInterval, config.DelayedTaskCheckInterval = tunedPoll, tunedPoll
	}
	post := newPoster(o.URL, o.Concurrency)
	s := asynq.NewServer(p.redis(o.Concurrency), config)
	if err := s.Start(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		return post.post(ctx, t.Payload())
	})); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	return nil
}

// pace enqueues so many tasks a second, each due at a random millisecond.
func (p *asynqPeer) pace(ctx context.Context, o order) error {
	return pace(ctx, o.Rate, o.Rate*o.Seconds, func(ctx context.Context, due time.Time) error {
		_, err := p.client.EnqueueContext(ctx, asynq.NewTask(taskType, body(due)), asynq.ProcessAt(due))
		return err //nolint:wrapcheck // says what it is
	})
}

// paceClients is how many clients register at a pace.
const paceClients = 16

// pace calls register n times at an even rate, each with a due moment that is a random millisecond from half a second to
// two and a half away.
func pace(ctx context.Context, rate, n int, register func(ctx context.Context, due time.Time) error) error {
	began := time.Now()
	return spread(ctx, paceClients, n, func(ctx context.Context, i int) error {
		select {
		case <-time.After(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate)))):
		case <-ctx.Done():
			return nil // spread says why
		}
		wait := 500*time.Millisecond + rand.N(2*time.Second)
		return register(ctx, time.Now().Add(wait).Truncate(time.Millisecond))
	})
}
