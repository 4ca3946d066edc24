package dispatcher_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/sqlite"
)

// printer is a deliverer that prints attempts instead of sending them. notify.Sender sends them over HTTP.
type printer chan struct{}

func (p printer) Deliver(_ context.Context, r job.Request) policy.Result {
	fmt.Printf("%s %s: %s\n", r.Method, r.URL, r.Body)
	close(p)
	return policy.Result{Status: 200}
}

// A program that embeds Ringback: it opens a store, runs a dispatcher on it and registers a job.
func Example() {
	dir, err := os.MkdirTemp("", "ringback-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	log := slog.New(slog.DiscardHandler)

	defaults := sqlite.Defaults(policy.Builtin())
	st, err := sqlite.Open(ctx,
		sqlite.Options{Path: filepath.Join(dir, "ringback.db"), Limits: defaults.Limits(), Logger: log})
	if err != nil {
		panic(err)
	}
	defer func() { _ = st.Close() }()
	delivered := make(printer)
	d, err := dispatcher.New(dispatcher.Options{Store: st, Deliverer: delivered, Defaults: defaults, Logger: log})
	if err != nil {
		panic(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()

	results := d.Register(ctx, []job.New{{Spec: job.Spec{
		ID: "close-4711", Queue: job.Queue{Topic: "order.close"}, URL: "https://shop.example/hooks/close",
		Body: []byte(`{"order":4711}`), BodyKind: job.BodyJSON,
	}}})
	if err := results[0].Err; err != nil {
		panic(err)
	}
	<-delivered
	stop() // attempts in flight end, and are settled
	fmt.Println(<-ended)
	// Output:
	// POST https://shop.example/hooks/close: {"order":4711}
	// <nil>
}
