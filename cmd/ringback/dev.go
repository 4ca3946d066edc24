package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/cli"
	"github.com/ringback/ringback/internal/app"
	"github.com/ringback/ringback/internal/inbox"
	"github.com/ringback/ringback/internal/logs"
)

// devCommand is ringback dev.
type devCommand struct {
	serverFlags `embed:""`
	// Let jobs call loopback and private networks, such as the inbox.
	AllowPrivate bool `default:"true"`
	// Address of the inbox.
	Inbox string `default:"127.0.0.1:8081" placeholder:"HOST:PORT"`
	// File with signing secrets (whsec_…) and public keys (whpk_…), one a line, with which the inbox verifies
	// signatures. It is read for each signed request.
	InboxKeys string `name:"inbox-keys-file" placeholder:"FILE"`
}

// RunCommand runs the service and an inbox until ctx ends. The inbox closes last: attempts in flight still reach it.
func (c *devCommand) RunCommand(ctx context.Context, line *kong.Context, p *process) error {
	ignoreBrokenPipes()
	options, err := c.options(p, c.AllowPrivate, nil)
	if err != nil {
		return err
	}
	stdout := logs.NewBuffer(p.stdout) // a blocked stdout must not block the inbox
	defer stdout.Close(flushTime)
	in, err := inbox.Open(ctx, c.Inbox, c.InboxKeys, stdout)
	if err != nil {
		return p.settings.locateInbox("inbox", "inbox-keys-file", err)
	}
	options.Inbox = devInbox{in}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var background sync.WaitGroup
	defer background.Wait()
	defer in.Close()
	background.Go(func() {
		if err := in.Serve(); err != nil {
			printError(p.stderr, err)
		}
	})

	err = p.runApp(ctx, line, options, func(a *app.App) {
		background.Go(func() {
			banner{
				api: callableAddr(a.Addr()), console: !options.NoConsole, inbox: callableAddr(in.Addr()),
				tokens: options.RootTokens(), tokenFile: c.TokenFile, out: stdout,
			}.print(ctx)
		})
	})
	cancel()
	return err
}

// devInbox is the inbox as the console knows it.
type devInbox struct{ *inbox.Inbox }

// URL returns the URL at which the service reaches the inbox.
func (in devInbox) URL() string { return "http://" + callableAddr(in.Addr()) }

// banner prints the addresses of the API and the inbox and a command to try.
type banner struct {
	api, inbox string // host:port to call
	console    bool   // there is one
	tokens     []app.Secret
	tokenFile  string // source of the tokens, a line each; empty: RINGBACK_TOKEN
	out        io.Writer
}

// print prints the addresses, registers a sample job in a new store, and prints a curl command.
func (g banner) print(ctx context.Context) {
	fmt.Fprintf(g.out, "api   at http://%s\n", g.api)
	if g.console {
		fmt.Fprintf(g.out, "console: open http://%s/console/ in a browser\n", g.api)
	}
	fmt.Fprintln(g.out, inboxLine(g.inbox))
	registered, err := g.sample(ctx)
	if err != nil {
		if ctx.Err() == nil {
			fmt.Fprintf(g.out, "sample job failed: %v\n", err)
		}
		return
	}
	if registered {
		fmt.Fprintf(g.out,
			"a sample job was sent to /flaky: two attempts fail, the retries after 1s and 2s deliver it\n")
	}
	fmt.Fprintf(g.out,
		`try   curl http://%s/v1/jobs%s -H 'Content-Type: application/json' `+
			`-d '{"url": "http://%s/", "delay": "3s", "body": {"hello": "world"}}'`+"\n",
		g.api, g.authorization(), g.inbox)
}

// authorization returns curl's argument that sends the first token without printing it.
func (g banner) authorization() string {
	switch {
	case len(g.tokens) == 0:
		return ""
	case g.tokenFile != "":
		return ` -H "Authorization: Bearer $(head -n 1 ` + cli.ShellWord(g.tokenFile) + `)"`
	case len(g.tokens) > 1:
		return ` -H "Authorization: Bearer $(echo "$RINGBACK_TOKEN" | head -n 1)"`
	default:
		return ` -H "Authorization: Bearer $RINGBACK_TOKEN"`
	}
}

// callableAddr returns the address at which this machine can call a listener on addr: loopback for 0.0.0.0, [::] and no
// host, which are all addresses.
func callableAddr(addr string) string {
	if strings.HasPrefix(addr, ":") {
		addr = "0.0.0.0" + addr
	}
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().Unmap().IsUnspecified() {
		return addr
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port()).String()
}
