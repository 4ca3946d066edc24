package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite" // the driver that Ringback uses, too
)

const (
	// riverBatch is the number of jobs of one insertion.
	riverBatch = 5000
	// River's own benchmark has these values. They limit its throughput; the defaults are 100 ms and 1 s.
	riverCooldown = 2 * time.Millisecond
	riverPoll     = 20 * time.Millisecond
)

// callbackArgs are the arguments of a River job.
type callbackArgs struct {
	Body json.RawMessage `json:"body"`
}

func (callbackArgs) Kind() string { return "callback" }

// A callbackWorker calls handle with a job's body.
type callbackWorker struct {
	river.WorkerDefaults[callbackArgs]
	handle func(ctx context.Context, body []byte) error
}

func (w *callbackWorker) Work(ctx context.Context, j *river.Job[callbackArgs]) error {
	return w.handle(ctx, j.Args.Body)
}

// openRiver opens a store: postgres://… or a file for SQLite. Neither waits for the disk, the fastest setting that
// keeps the database consistent. SQLite has one connection, as River's manual requires.
func openRiver(ctx context.Context, o order) (queue, error) {
	if strings.HasPrefix(o.Store, "postgres:") {
		config, err := pgxpool.ParseConfig(o.Store)
		if err != nil {
			return nil, fmt.Errorf("read the address: %w", err)
		}
		config.MaxConns = 32
		config.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		return newRiver(ctx, riverpgxv5.New(pool), o)
	}
	db, err := sql.Open("sqlite", "file:"+o.Store+
		"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	db.SetMaxOpenConns(1)
	return newRiver(ctx, riversqlite.New(db), o)
}

// riverClient is River on any driver: one client inserts, one processes. Without LISTEN, as on SQLite, a client that
// processes cannot insert before it is started.
type riverClient[T any] struct {
	inserts, works *river.Client[T]
	handled        func() error
}

func newRiver[T any](ctx context.Context, driver riverdriver.Driver[T], o order) (queue, error) {
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("prepare the store: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, fmt.Errorf("prepare the store: %w", err)
	}
	workers := river.NewWorkers()
	handle, handled := handlerOf(o)
	river.AddWorker(workers, &callbackWorker{handle: handle})
	inserts, err := river.NewClient(driver, &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	works, err := river.NewClient(driver, &river.Config{
		FetchCooldown: riverCooldown, FetchPollInterval: riverPoll,
		Logger:  slog.New(slog.DiscardHandler),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: o.Concurrency}},
		Workers: workers,
	})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return riverClient[T]{inserts, works, handled}, nil
}

func (c riverClient[T]) fill(ctx context.Context, jobs int) error {
	args := callbackArgs{Body: body(time.Now())}
	for left := jobs; left > 0; left -= riverBatch {
		batch := make([]river.InsertManyParams, min(left, riverBatch))
		for i := range batch {
			batch[i].Args = args
		}
		if _, err := c.inserts.InsertManyFast(ctx, batch); err != nil {
			return fmt.Errorf("insert jobs: %w", err)
		}
	}
	return nil
}

func (c riverClient[T]) start(ctx context.Context) error {
	if err := c.works.Start(ctx); err != nil {
		return fmt.Errorf("start the client: %w", err)
	}
	return c.handled()
}
