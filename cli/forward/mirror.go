package forward

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/sign"
)

// maxQueued bounds the attempts that wait to be copied.
const maxQueued = 256

// ErrNoBodies: copies need a token that may read bodies.
var ErrNoBodies = errors.New("this token may not read bodies, so there is nothing to copy")

// mirror sends copies of attempts until ctx ends.
func (f *forwarder) mirror(ctx context.Context) error {
	queue := make(chan *client.StreamAttempt, maxQueued)
	defer close(queue)
	for range f.opts.Concurrency {
		f.inFlight.Go(func() {
			for a := range queue {
				if ctx.Err() == nil {
					f.copy(a)
				}
			}
		})
	}
	var o client.StreamOptions
	if len(f.opts.Routes) == 1 && !f.opts.Routes[0].isOpen() {
		o.Topic = f.opts.Routes[0].Pattern
	}
	f.say("copying attempts as the server makes them")
	for e, err := range f.opts.Client.Stream(ctx, o) {
		switch {
		case err != nil:
			return err
		case e.Resumed:
			f.say("the connection to the server was interrupted: attempts of that time are not copied")
		case e.Skipped > 0:
			f.say("%d updates are missing, among them perhaps attempts: there are too many in a second", e.Skipped)
		case e.Attempt != nil && f.isCopied(e.Attempt):
			select {
			case queue <- e.Attempt:
			default:
				f.drop()
			}
		}
	}
	return nil
}

// drop counts an attempt that is not copied, and says their number after a second.
func (f *forwarder) drop() {
	if f.dropped.Add(1) == 1 {
		time.AfterFunc(time.Second, func() {
			f.say("attempts that are not copied: %d, as the receiver is slower than the server", f.dropped.Swap(0))
		})
	}
}

// isCopied reports whether an attempt was a request for one of the routes.
func (f *forwarder) isCopied(a *client.StreamAttempt) bool {
	return a.Kind == "attempt" && targetOf(f.opts.Routes, a.Topic) != nil &&
		(len(f.opts.Lanes) == 0 || slices.ContainsFunc(f.opts.Lanes, func(pattern string) bool {
			return (&Route{Pattern: pattern}).matches(a.Lane)
		}))
}

// copy sends a copy of an attempt.
func (f *forwarder) copy(a *client.StreamAttempt) {
	target := targetOf(f.opts.Routes, a.Topic)
	j, err := f.opts.Client.Get(f.working, a.ID)
	if err != nil {
		f.say("%s is not copied: %s", a.ID, err)
		return
	}
	own := j.URL
	if j.Effective != nil {
		own = j.Effective.URL
	}
	d := Delivery{
		At: time.Now().UTC(), ID: a.ID, Topic: a.Topic, Lane: a.Lane, Attempt: a.N,
		URL: address(target, own, f.opts.KeepPath), Copy: true,
	}
	got, err := f.send(f.working, j.Method, d.URL, f.headerOf(copiedHeaders(j, a), j.ID, j.Body), j.Body)
	if errors.As(err, new(unsentError)) {
		f.noteListener(target, err)
		return
	}
	f.noteListener(target, nil)
	d.DurationMS, d.Status = float64(time.Since(d.At).Microseconds())/1000, got.status
	if err != nil {
		d.Error = err.Error()
	}
	f.opts.Report(d)
}

// copiedHeaders are the fields of a job that are no secrets, and those of an attempt.
func copiedHeaders(j *client.JobInfo, a *client.StreamAttempt) client.Headers {
	all := make(client.Headers, len(j.Headers)+6)
	for name, values := range j.Headers {
		if !slices.Contains(values, "[redacted]") {
			all[name] = values
		}
	}
	all[sign.HeaderID] = []string{j.ID}
	all[sign.HeaderTimestamp] = []string{strconv.FormatInt(a.StartedAt.Unix(), 10)}
	all["Ringback-Topic"] = []string{j.Topic}
	all["Ringback-Attempt"] = []string{strconv.Itoa(a.N)}
	if j.ContentType != "" {
		all["Content-Type"] = []string{j.ContentType}
	}
	return all
}
