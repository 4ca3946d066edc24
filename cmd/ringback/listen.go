package main

import (
	"context"
	"fmt"

	"github.com/ringback/ringback/internal/inbox"
)

// listenCommand is ringback listen.
type listenCommand struct {
	Addr string `default:"127.0.0.1:8081" placeholder:"HOST:PORT" variable:"RINGBACK_INBOX" help:"Address of the inbox."`
}

// Run serves the inbox until ctx ends.
func (c *listenCommand) Run(ctx context.Context, p *process) error {
	in, err := inbox.Open(ctx, c.Addr, p.stdout)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "inbox at http://%s/ (200) and http://%s/flaky (500 twice, then 200)\n",
		callableAddr(in.Addr()), callableAddr(in.Addr()))
	stop := context.AfterFunc(ctx, in.Close)
	defer stop()
	return in.Serve()
}
