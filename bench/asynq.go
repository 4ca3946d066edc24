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
	// tunedPoll is the interval at which asynq polls when its lateness is measured. Its defaults are 1 s, and 5 s for
	// scheduled tasks.
	tunedPoll = 10 * time.Millisecond
)

// An asynqPeer enqueues and processes tasks with asynq. A task has the body only: the handler knows the receiver, so
// its URL is not stored. Completed tasks are not retained, which is asynq's default and its fastest setting.
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
		case "open":
			return answer{}, nil
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

// redis has a connection for each worker and a few more. The default is ten per processor.
func (p *asynqPeer) redis(workers int) asynq.RedisClientOpt {
	return asynq.RedisClientOpt{Addr: p.store, PoolSize: workers + 16}
}

// fill enqueues jobs one by one, since asynq has no call for many. They are due at once, or after o.Seconds.
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
		return err // says what it is
	})
}

// work starts the server, without a log.
func (p *asynqPeer) work(o order) error {
	config := asynq.Config{Concurrency: o.Concurrency, LogLevel: asynq.FatalLevel}
	if o.Tuned {
		config.TaskCheckInterval, config.DelayedTaskCheckInterval = tunedPoll, tunedPoll
	}
	handle, handled := handlerOf(o)
	s := asynq.NewServer(p.redis(o.Concurrency), config)
	if err := s.Start(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		return handle(ctx, t.Payload())
	})); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	return handled()
}

// pace enqueues o.Rate tasks per second, each due at a random millisecond.
func (p *asynqPeer) pace(ctx context.Context, o order) error {
	return pace(ctx, o.Rate, o.Rate*o.Seconds, func(ctx context.Context, due time.Time) error {
		_, err := p.client.EnqueueContext(ctx, asynq.NewTask(taskType, body(due)), asynq.ProcessAt(due))
		return err // says what it is
	})
}

// paceClients is the number of clients that register at a pace.
const paceClients = 16

// pace calls register n times at an even rate, each with a random due time half a second to two and a half seconds
// ahead.
func pace(ctx context.Context, rate, n int, register func(ctx context.Context, due time.Time) error) error {
	began := time.Now()
	return spread(ctx, paceClients, n, func(ctx context.Context, i int) error {
		select {
		case <-time.After(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate)))):
		case <-ctx.Done():
			return nil // spread returns the cause
		}
		wait := 500*time.Millisecond + rand.N(2*time.Second)
		return register(ctx, time.Now().Add(wait).Truncate(time.Millisecond))
	})
}
