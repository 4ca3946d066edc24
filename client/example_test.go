package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"sort"
	"time"

	"github.com/ringback/ringback/api"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/notify"
	"github.com/ringback/ringback/store/storetest"
)

// Register a job, and look at it.
func Example() {
	server, stop := serve()
	defer stop()
	// without a deadline, calls try as long as the server is away
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	c, err := client.New(server, client.Options{}) // Token: what the server requires
	if err != nil {
		panic(err)
	}
	_, err = c.Register(ctx, client.Job{
		ID: "close-4711", Topic: "order.close", URL: "https://shop.example/hooks/close", Delay: 30 * time.Minute,
		Body: map[string]int{"order": 4711},
	})
	if err != nil {
		panic(err)
	}
	job, err := c.Get(ctx, "close-4711")
	if err != nil {
		panic(err)
	}
	fmt.Println(job.State, string(job.Body), job.WaitingFor.Kind)
	// Output: scheduled {"order":4711} due
}

// Errors of the server are Problems with the fields that are wrong, and compare with sentinels.
func ExampleProblem() {
	server, stop := serve()
	defer stop()
	c, err := client.New(server, client.Options{})
	if err != nil {
		panic(err)
	}
	_, err = c.Get(context.Background(), "close-4712")
	fmt.Println(errors.Is(err, client.ErrNotFound))
	_, err = c.Register(context.Background(), client.Job{URL: "shop.example"})
	if p, ok := errors.AsType[*client.Problem](err); ok {
		fmt.Println(p.Status, p.Code, p.Errors[0].Field)
	}
	// Output:
	// true
	// 422 invalid_field /url
}

// Register any number of jobs. Results come as jobs are stored.
func ExampleClient_RegisterAll() {
	server, stop := serve()
	defer stop()
	c, err := client.New(server, client.Options{})
	if err != nil {
		panic(err)
	}
	orders := func(yield func(client.Job) bool) { // perhaps from a database
		for order := 4711; order <= 4714; order++ {
			url := "https://shop.example/hooks/close"
			if order == 4713 {
				url = "shop.example"
			}
			if !yield(client.Job{ID: fmt.Sprintf("close-%d", order), URL: url, Delay: time.Hour, Body: order}) {
				return
			}
		}
	}
	var lines []string
	for result, err := range c.RegisterAll(context.Background(), orders) {
		if err != nil {
			panic(err) // the server is away for longer than the context lasts, or refuses the token
		}
		if result.Err != nil {
			lines = append(lines, fmt.Sprintf("%s is refused: %v", result.ID, errors.Is(result.Err, client.ErrInvalid)))
		} else {
			lines = append(lines, result.ID+" is registered")
		}
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Println(line)
	}
	// Output:
	// close-4711 is registered
	// close-4712 is registered
	// close-4713 is refused: true
	// close-4714 is registered
}

// A list requests page after page, and nothing more after a break.
func ExampleClient_Jobs() {
	server, stop := serve()
	defer stop()
	ctx := context.Background()
	c, err := client.New(server, client.Options{})
	if err != nil {
		panic(err)
	}
	for _, customer := range []string{"4711", "4712", "4711"} {
		_, err := c.Register(ctx, client.Job{
			URL: "https://shop.example/hooks/close", Delay: time.Hour, Labels: map[string]string{"customer": customer},
		})
		if err != nil {
			panic(err)
		}
	}
	for job, err := range c.Jobs(ctx,
		client.Query{State: []client.State{client.Scheduled}, Label: []string{"customer:4711"}}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(job.State, job.Labels)
	}
	// Output:
	// scheduled map[customer:4711]
	// scheduled map[customer:4711]
}

// Change a job only if nobody has changed it since it was read.
func ExampleIfRevision() {
	server, stop := serve()
	defer stop()
	ctx := context.Background()
	c, err := client.New(server, client.Options{})
	if err != nil {
		panic(err)
	}
	job, err := c.Register(ctx,
		client.Job{URL: "https://shop.example/hooks/close", Delay: time.Hour, Timeout: time.Minute})
	if err != nil {
		panic(err)
	}
	edited, err := c.Edit(ctx, job.ID, client.Change{Delay: new(2 * time.Hour), Null: []string{"timeout"}},
		client.IfRevision(job.Revision))
	if err != nil {
		panic(err)
	}
	fmt.Println(edited.Timeout == 0)
	_, err = c.Edit(ctx, job.ID, client.Change{Retries: new(3)}, client.IfRevision(job.Revision))
	fmt.Println(errors.Is(err, client.ErrRevision))
	// Output:
	// true
	// true
}

// Consume a pulled topic: several jobs at a time, whose leases are extended while the function runs.
func ExampleClient_Work() {
	server, stop := serve()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := client.New(server, client.Options{})
	if err != nil {
		panic(err)
	}
	if _, err := c.PutTopic(ctx, "pdf", client.Policy{Deliver: "pull"}); err != nil {
		panic(err)
	}
	if _, err := c.Register(ctx, client.Job{Topic: "pdf", Body: map[string]int{"invoice": 4711}}); err != nil {
		panic(err)
	}
	err = c.Work(
		ctx, "pdf", client.WorkOptions{Concurrency: 4}, func(ctx context.Context, job *client.LeasedJob) error {
			fmt.Println(job.Attempt, string(job.Body))
			job.Response = map[string]int{"pages": 3}
			cancel()   // a program that runs on does not
			return nil // or client.RetryAfter(time.Hour, err), or client.NoRetry(err)
		},
	)
	fmt.Println(err)
	// Output:
	// 1 {"invoice":4711}
	// <nil>
}

// serve runs a server in this process.
func serve() (url string, stop func()) {
	quiet := slog.New(slog.DiscardHandler)
	store := storetest.NewModel(storetest.ModelOptions{})
	sender, err := notify.New(notify.Options{})
	if err != nil {
		panic(err)
	}
	d, err := dispatcher.New(dispatcher.Options{Store: store, Deliverer: sender, OneProcess: true, Logger: quiet})
	if err != nil {
		panic(err)
	}
	service := dispatcher.NewService(d, nil, quiet)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	server := httptest.NewServer(api.New(api.Options{Service: api.NewService(service), Logger: quiet}))
	return server.URL, func() {
		cancel()
		server.CloseClientConnections()
		server.Close()
		if err := <-ended; err != nil {
			panic(err)
		}
		sender.Close()
		_ = store.Close()
	}
}
