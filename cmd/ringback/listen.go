package main

import (
	"context"
	"fmt"
)

// listenCommand is ringback listen.
type listenCommand struct {
	Addr string `default:"127.0.0.1:8081" placeholder:"HOST:PORT" variable:"RINGBACK_INBOX" help:"Address of the inbox."`
}

// Run serves the inbox until ctx ends.
func (c *listenCommand) Run(ctx context.Context, p *process) error {
	in, err := openInbox(ctx, c.Addr, p.stdout)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "inbox at http://%s/ (200) and http://%s/flaky (500 twice, then 200)\n",
		callableAddr(in.addr()), callableAddr(in.addr()))
	return in.serveUntil(ctx)
}

// serveUntil serves until ctx ends.
func (in *inbox) serveUntil(ctx context.Context) error {
	stop := context.AfterFunc(ctx, in.close)
	defer stop()
	return in.serve()
}
