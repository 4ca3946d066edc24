package main

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/ringback/ringback/app"
)

// devCommand is ringback dev.
type devCommand struct {
	serverFlags `embed:""`
	Inbox       string `default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"Address of the inbox."`
}

// Run serves, with an inbox beside it, until ctx ends. The inbox closes last: attempts in flight still reach it.
func (c *devCommand) Run(ctx context.Context, p *process) error {
	options, err := c.options(p)
	if err != nil {
		return err
	}
	options.AllowPrivate = true
	in, err := openInbox(ctx, c.Inbox, p.stdout)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var beside sync.WaitGroup
	defer beside.Wait()
	defer in.close()
	beside.Go(func() {
		if err := in.serve(); err != nil {
			complain(p.stderr, err)
		}
	})

	a, err := app.New(ctx, options)
	if err != nil {
		return err
	}
	beside.Go(func() { greeting{api: a.Addr(), inbox: in.addr(), token: options.Token, out: p.stdout}.give(ctx) })
	err = a.Run(ctx)
	cancel()
	return err
}

// A greeting shows a newcomer what there is.
type greeting struct {
	api, inbox string
	token      app.Token
	out        io.Writer
}

// give prints where things are, registers a sample job in a new store, and prints a line to try.
func (g greeting) give(ctx context.Context) {
	authorization := ""
	if g.token != "" {
		authorization = ` -H "Authorization: Bearer $RINGBACK_TOKEN"`
	}
	fmt.Fprintf(g.out, "api   at http://%s\ninbox at http://%s/ (200) and http://%s/flaky (500 twice, then 200)\n",
		g.api, g.inbox, g.inbox)
	registered, err := g.sample(ctx)
	if err != nil {
		if ctx.Err() == nil {
			fmt.Fprintf(g.out, "no sample job: %v\n", err)
		}
		return
	}
	if registered {
		fmt.Fprintf(g.out, "a sample job is on its way to /flaky: it fails twice, and arrives after 1s and 2s\n")
	}
	fmt.Fprintf(g.out, `try   curl http://%s/v1/jobs%s --json '{"url": "http://%s/", "delay": "3s", "body": {"hello": "world"}}'`+"\n",
		g.api, authorization, g.inbox)
}
