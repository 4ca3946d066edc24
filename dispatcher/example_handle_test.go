package dispatcher_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/sqlite"
)

// order is the body of a job.
type order struct {
	Number int
	Stock  int
}

// A program that handles jobs itself: it opens a store, names a function for a topic, runs, and registers jobs.
func ExampleDispatcher_Handle() {
	dir, err := os.MkdirTemp("", "ringback-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, log := context.Background(), slog.New(slog.DiscardHandler)
	defaults := sqlite.Defaults(policy.Builtin())
	st, err := sqlite.Open(ctx,
		sqlite.Options{Path: filepath.Join(dir, "jobs.db"), Limits: defaults.Limits(), Logger: log})
	if err != nil {
		panic(err)
	}
	defer func() { _ = st.Close() }()
	d, err := dispatcher.New(dispatcher.Options{Store: st, Defaults: defaults, Logger: log})
	if err != nil {
		panic(err)
	}

	handled := make(chan string)
	d.Handle("order.ship", func(_ context.Context, j *dispatcher.Job) error {
		var o order
		if err := json.Unmarshal(j.Body, &o); err != nil {
			handled <- j.ID + " cannot be read"
			return dispatcher.Dead(err.Error()) // no retry would change that
		}
		if o.Stock == 0 && j.Attempt == 1 {
			handled <- j.ID + " waits for stock"
			return fmt.Errorf("order %d: no stock: %w", o.Number, dispatcher.Retry(time.Second))
		}
		handled <- j.ID + " is shipped"
		return nil
	})
	go func() { _ = d.Run(ctx) }()
	defer d.Close() // calls in flight end, before the store is closed

	result := d.Register(ctx, []job.New{{Spec: job.Spec{
		ID: "ship-1", Queue: job.Queue{Topic: "order.ship"}, BodyKind: job.BodyJSON,
		Body: []byte(`{"Number": 1, "Stock": 0}`),
	}}})[0]
	if result.Err != nil {
		panic(result.Err)
	}
	fmt.Println(<-handled)
	fmt.Println(<-handled)
	// Output:
	// ship-1 waits for stock
	// ship-1 is shipped
}

// A program that handles the jobs of one topic, and sends those of others to their URLs.
func ExampleDispatcher_Handle_besidePush() {
	ctx, log := context.Background(), slog.New(slog.DiscardHandler)
	defaults := sqlite.Defaults(policy.Builtin())
	st, err := sqlite.Open(ctx, sqlite.Options{Path: "jobs.db", Limits: defaults.Limits(), Logger: log})
	if err != nil {
		panic(err)
	}
	defer func() { _ = st.Close() }()
	sender, err := notify.New(notify.Options{}) // calls public addresses only
	if err != nil {
		panic(err)
	}
	defer sender.Close()
	d, err := dispatcher.New(dispatcher.Options{Store: st, Deliverer: sender, Defaults: defaults, Logger: log})
	if err != nil {
		panic(err)
	}
	d.Handle("thumbnails", func(ctx context.Context, _ *dispatcher.Job) error { return ctx.Err() })
	go func() { _ = d.Run(ctx) }()
	defer d.Close()
	d.Register(ctx, []job.New{
		{Spec: job.Spec{Queue: job.Queue{Topic: "thumbnails"}, Body: []byte("image-42"), BodyKind: job.BodyText}},
		{Spec: job.Spec{Queue: job.Queue{Topic: "order.closed"}, URL: "https://shop.example/hooks/closed"}},
	})
}
