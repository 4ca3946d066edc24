package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"

	"github.com/ringback/ringback/app"
	"github.com/ringback/ringback/internal/logbuffer"
)

// devCommand is ringback dev.
type devCommand struct {
	serverFlags `embed:""`
	// AllowPrivate is serve's flag with another default: without it no job reaches the inbox.
	AllowPrivate bool   `default:"true" help:"Let jobs call loopback and private networks too, such as the inbox."`
	Inbox        string `default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"Address of the inbox."`
}

// Run serves, with an inbox beside it, until ctx ends. The inbox closes last: attempts in flight still reach it.
func (c *devCommand) Run(ctx context.Context, p *process) error {
	ignoreBrokenPipes()
	options, err := c.options(p, c.AllowPrivate, nil)
	if err != nil {
		return err
	}
	stdout := logbuffer.New(p.stdout, logbuffer.Options{}) // the inbox answers whether anybody reads what it prints or not
	defer stdout.Close(flushTime)
	in, err := openInbox(ctx, c.Inbox, stdout)
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
	beside.Go(func() {
		greeting{
			api: reachable(a.Addr()), inbox: reachable(in.addr()), token: options.Token, tokenFile: c.TokenFile, out: stdout,
		}.give(ctx)
	})
	err = a.Run(ctx)
	cancel()
	return err
}

// A greeting shows a newcomer what there is.
type greeting struct {
	api, inbox string // host:port that can be called from here
	token      app.Token
	tokenFile  string // where the token comes from; empty: RINGBACK_TOKEN
	out        io.Writer
}

// give prints where things are, registers a sample job in a new store, and prints a line to try.
func (g greeting) give(ctx context.Context) {
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
		g.api, g.authorization(), g.inbox)
}

// authorization is what curl needs to show the token, which itself is not printed.
func (g greeting) authorization() string {
	switch {
	case g.token == "":
		return ""
	case g.tokenFile != "":
		return ` -H "Authorization: Bearer $(cat ` + shellWord(g.tokenFile) + `)"`
	default:
		return ` -H "Authorization: Bearer $RINGBACK_TOKEN"`
	}
}

// shellWord is text as one word of a shell's command line.
func shellWord(text string) string {
	if text != "" && strings.Trim(text, wordly) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// wordly are characters that mean nothing to a shell.
const wordly = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./"

// reachable is an address at which this machine reaches what listens at addr: listening at 0.0.0.0 or [::] is listening
// everywhere, and no address to call.
func reachable(addr string) string {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().Unmap().IsUnspecified() {
		return addr
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port()).String()
}
