package main

import (
	"context"
	"fmt"

	"github.com/ringback/ringback/internal/inbox"
)

// listenCommand is ringback listen.
type listenCommand struct {
	// Address of the inbox.
	Addr string `default:"127.0.0.1:8081" placeholder:"HOST:PORT" variable:"RINGBACK_INBOX"`
	// File with signing secrets (whsec_…) and public keys (whpk_…), one a line, that verify the signatures of requests.
	// It is read for each signed request.
	KeysFile string `placeholder:"FILE" variable:"RINGBACK_INBOX_KEYS_FILE"`
}

// RunCommand serves the inbox until ctx ends.
func (c *listenCommand) RunCommand(ctx context.Context, p *process) error {
	in, err := inbox.Open(ctx, c.Addr, c.KeysFile, p.stdout)
	if err != nil {
		return p.settings.locateInbox("addr", "keys-file", err)
	}
	fmt.Fprintln(p.stdout, inboxLine(callableAddr(in.Addr())))
	stop := context.AfterFunc(ctx, in.Close)
	defer stop()
	return in.Serve()
}

// inboxLine tells the URLs of an inbox.
func inboxLine(addr string) string {
	return fmt.Sprintf("inbox at http://%s/ (200), /flaky (500 twice, then 200), /status/503, /slow/5s", addr)
}
