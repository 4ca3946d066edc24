package forward

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/ringback/ringback/job"
)

// awaitListener waits until a connection to a URL can be made. It returns false if ctx ends first.
func (f *forwarder) awaitListener(ctx context.Context, target *url.URL) bool {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := f.connect(ctx, target)
		if err != nil && ctx.Err() != nil {
			return false
		}
		f.noteListener(target, err)
		if err == nil {
			return true
		}
		if !sleep(ctx, pause) {
			return false
		}
	}
}

// connect makes a connection to a URL, and ends it.
func (f *forwarder) connect(ctx context.Context, target *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, maxPause)
	defer cancel()
	c, err := f.opts.Dial(ctx, "tcp", hostPort(target))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if target.Scheme == "https" {
		return tls.Client(c, &tls.Config{ServerName: target.Hostname()}).HandshakeContext(ctx)
	}
	return nil
}

// noteListener says when something begins or ends to listen; err says why no connection can be made.
func (f *forwarder) noteListener(target *url.URL, err error) {
	f.mu.Lock()
	was := f.down[target.Host]
	f.down[target.Host] = err != nil
	f.mu.Unlock()
	what, then := "nothing listens at "+target.Host, "jobs wait on the server until something does"
	if f.opts.Copy {
		then = "copies are dropped until something does"
	}
	if !isDial(err) {
		what, then = fmt.Sprintf("no connection to %s can be made: %v", target.Host, err), strings.ReplaceAll(then,
			"something does", "one can")
	}
	switch {
	case was && err == nil:
		f.say("%s listens", target.Host)
	case !was && err != nil:
		f.say("%s: %s", what, then)
	}
}

// hostPort returns the address of a URL.
func hostPort(u *url.URL) string {
	return net.JoinHostPort(u.Hostname(), job.PortOf(u))
}
