package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	contract "github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis"
	"github.com/ringback/ringback/store/sqlite"
)

// libraryTopic is the topic of the program that embeds Ringback.
const libraryTopic = "bench"

// library is a program that embeds Ringback and handles jobs.
type library struct {
	*dispatcher.Dispatcher

	handled func() error
}

// openLibrary opens a store of Ringback, at the URL that its program would have.
func openLibrary(ctx context.Context, o order) (queue, error) {
	options := dispatcher.Options{Defaults: policy.Builtin()}
	var err error
	if path, ok := strings.CutPrefix(o.Store, "sqlite:"); ok {
		options.Defaults = sqlite.Defaults(options.Defaults)
		options.Store, err = sqlite.Open(ctx, sqlite.Options{Path: path, Limits: options.Defaults.Limits()})
	} else {
		options.Store, err = redis.Open(ctx, redis.Options{URL: o.Store, Limits: options.Defaults.Limits()})
	}
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	d, err := dispatcher.New(options)
	if err != nil {
		return nil, fmt.Errorf("make a dispatcher: %w", err)
	}
	handle, handled := handlerOf(o)
	d.Handle(libraryTopic, func(ctx context.Context, j *dispatcher.Job) error { return handle(ctx, j.Body) })
	if _, err = d.ChangeTopic(ctx, job.DefaultNamespace, libraryTopic, contract.ChangeOptions{},
		func(p *policy.Topic) error {
			p.Workers, p.LaneConcurrency = o.Concurrency, laneLimit(o.Concurrency)
			return nil
		}); err != nil {
		return nil, fmt.Errorf("set the topic's policy: %w", err)
	}
	return library{d, handled}, nil
}

func (l library) fill(ctx context.Context, jobs int) error {
	text := body(time.Now())
	return spread(ctx, batchClients, (jobs+batchJobs-1)/batchJobs, func(ctx context.Context, k int) error {
		batch := make([]job.New, min(jobs-k*batchJobs, batchJobs))
		for i := range batch {
			batch[i].Spec = job.Spec{Queue: job.Queue{Topic: libraryTopic}, Body: text, BodyKind: job.BodyJSON}
		}
		for _, result := range l.Register(ctx, batch) {
			if result.Err != nil {
				return result.Err
			}
		}
		return nil
	})
}

func (l library) start(ctx context.Context) error {
	go func() {
		if err := l.Run(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}()
	return l.handled()
}
