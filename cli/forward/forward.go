package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/sign"
)

// Options are the options of Run.
type Options struct {
	Client *client.Client
	// Routes say where the jobs of topics go: by the first that matches. Those without a * name topics, which must be
	// pulled; the others are for all pulled topics that match, also those that come later.
	Routes []Route
	Lanes  []string // names, or beginnings of names with a * at the end; empty: all
	Copy   bool     // send copies of what the server sends, and lease nothing
	// KeepPath appends the path and the query of the job's own URL to that of its route.
	KeepPath    bool
	Concurrency int           // requests of a topic at a time, up to 100; zero: 8
	Count       int           // requests after which Run ends; zero: it does not
	Grace       time.Duration // for requests that run when the context ends; zero: 10 s
	Header      http.Header   // instead of the jobs' fields of these names
	Agent       string        // User-Agent of jobs that have none
	Signer      *sign.Signer  // signs instead of the server; nil: it does not
	Report      func(Delivery)
	// what a person should know beside deliveries
	Say  func(text string)
	Dial func(ctx context.Context, network, address string) (net.Conn, error) // nil: as usual
}

// Bounds and waits.
const (
	leaseFor    = time.Minute
	firstExtend = 2 * time.Second // jobs may have a timeout that is shorter than leaseFor
	pollWait    = 30 * time.Second
	answerTime  = 15 * time.Second // for an answer of the server, beyond a wait
	lookEvery   = 30 * time.Second // for new topics
	minPause    = 500 * time.Millisecond
	maxPause    = 5 * time.Second
	giveBack    = 2 * time.Second // for what is given back after the grace
)

// errNotPulled is the error for a topic whose jobs cannot be leased.
func errNotPulled(topic string) error {
	return &client.Problem{Status: http.StatusConflict, Code: "wrong_state", Detail: fmt.Sprintf(
		"the jobs of topic %s are pushed to their URLs, so there are none to take: mirror them with --copy, or make "+
			"all of them wait until they are "+
			"taken with ringback topic set %s deliver=pull (and push them again with deliver=push)", topic, topic)}
}

// errUnknown is the error for a topic without settings: one of a mistyped name, or one whose jobs are pushed by the
// defaults.
func errUnknown(topic string) error {
	return &client.Problem{Status: http.StatusNotFound, Code: "not_found", Detail: fmt.Sprintf(
		"there is no topic %s: ringback topic list shows the topics, and ringback topic set %s deliver=pull makes "+
			"this one", topic, topic)}
}

// UnavailableError is the error of a server that does not answer at the start.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return e.Err.Error() }
func (e *UnavailableError) Unwrap() error { return e.Err }

// The reasons why a request is cancelled.
var (
	errStopped   = errors.New("stopped")
	errCancelled = errors.New("the job was cancelled")
	errLost      = errors.New("its lease has ended: it comes again")
)

// forwarder is the state of Run.
type forwarder struct {
	opts      Options
	transport *http.Transport
	working   context.Context //nolint:containedctx // of requests, which may outlive Run's context for a grace
	reporting context.Context //nolint:containedctx // of what the server is told of them, for a little longer
	inFlight  sync.WaitGroup

	running  atomic.Int64 // requests
	reported atomic.Int64 // requests
	dropped  atomic.Int64 // attempts that were not copied in the last second

	mu      sync.Mutex
	offline bool            // the server does not answer
	down    map[string]bool // hosts to which no connection can be made
}

// Run passes jobs on until ctx ends, and returns nil then. It returns an error if a topic is not pulled, or the server
// refuses.
func Run(ctx context.Context, o Options) error {
	o.Concurrency, o.Grace = min(cmp.Or(o.Concurrency, 8), 100), cmp.Or(o.Grace, 10*time.Second)
	reporting, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	working, stop := context.WithCancelCause(reporting)
	defer stop(nil)
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(ctx, func() {
		if sleep(reporting, o.Grace) {
			stop(errStopped)
		}
		if sleep(reporting, giveBack) {
			abandon()
		}
	})()
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	}
	f := &forwarder{
		opts: o, transport: newTransport(o.Dial), working: working, reporting: reporting, down: make(map[string]bool),
	}
	defer f.transport.CloseIdleConnections()
	f.opts.Report = func(d Delivery) {
		o.Report(d)
		if f.reported.Add(1) == int64(o.Count) {
			end()
		}
	}
	who, err := f.whoami(ctx)
	switch {
	case err != nil:
	case o.Copy && !who.Bodies:
		err = ErrNoBodies
	case o.Copy:
		err = f.mirror(ctx)
	default:
		err = f.lease(ctx)
	}
	if ctx.Err() != nil {
		err = nil
	}
	end()
	if n := f.running.Load(); n > 0 {
		f.say("waiting up to %s for %d requests; the jobs of others are given back", o.Grace, n)
	}
	f.inFlight.Wait()
	return err
}

// whoami asks the server for what its token may do. It does not wait long, as it is the first request of all.
func (f *forwarder) whoami(ctx context.Context) (*client.Principal, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	who, err := f.opts.Client.Whoami(ctx)
	if err != nil && !isRefused(err) {
		err = &UnavailableError{err}
	}
	return who, err
}

// noteServer says when the server begins or ends to answer; err says why it does not.
func (f *forwarder) noteServer(err error) {
	f.mu.Lock()
	was := f.offline
	f.offline = err != nil
	f.mu.Unlock()
	switch {
	case was && err == nil:
		f.say("the server answers again")
	case !was && err != nil:
		f.say("no answer from the server, trying again: %s", err)
	}
}

func (f *forwarder) say(format string, args ...any) { f.opts.Say(fmt.Sprintf(format, args...)) }

// lease leases the jobs of all topics until ctx ends or one fails.
func (f *forwarder) lease(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var topics sync.WaitGroup
	defer func() {
		cancel(nil) // before the wait: the topics that run are ended by it
		topics.Wait()
	}()
	var known sync.Map // topics that are leased
	begin := func(topic string, found bool) {
		if _, leased := known.LoadOrStore(topic, true); leased {
			return
		}
		target := targetOf(f.opts.Routes, topic)
		f.say("forwarding %s to %s", topic, target)
		topics.Go(func() {
			switch err := f.leaseTopic(ctx, topic, target); {
			case found && (errors.Is(err, client.ErrConflict) || errors.Is(err, client.ErrNotFound)):
				f.say("%s is not pulled any more: it is forwarded again when it is", topic)
				known.Delete(topic)
			case err != nil:
				cancel(err)
			}
		})
	}
	open, began := false, false
	for i := range f.opts.Routes {
		r := &f.opts.Routes[i]
		if open = open || r.isOpen(); r.isOpen() {
			continue
		}
		switch topic, err := f.opts.Client.GetTopic(ctx, r.Pattern); {
		case errors.Is(err, client.ErrNotFound):
			return cmp.Or(context.Cause(ctx), errUnknown(r.Pattern))
		case err == nil && topic.Deliver != "pull":
			return cmp.Or(context.Cause(ctx), errNotPulled(r.Pattern))
		case err != nil:
			return cmp.Or(context.Cause(ctx), err)
		}
		began = true
		begin(r.Pattern, false)
	}
	for first := true; open; first = false {
		for topic, err := range f.opts.Client.Topics(ctx) {
			switch {
			case err != nil && (ctx.Err() != nil || first || isRefused(err)):
				return cmp.Or(context.Cause(ctx), err)
			case err != nil:
				f.say("no list of the topics, trying again: %s", err)
				continue // ends the list
			}
			if topic.Deliver == "pull" && targetOf(f.opts.Routes, topic.Name) != nil {
				began = true
				begin(topic.Name, true)
			}
		}
		if first && !began {
			f.say("no pulled topic matches the routes yet")
		}
		if !sleep(ctx, lookEvery) {
			break
		}
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// leaseTopic leases the jobs of a topic until ctx ends.
func (f *forwarder) leaseTopic(ctx context.Context, topic string, target *url.URL) error {
	slots := make(chan struct{}, f.opts.Concurrency)
	pause := minPause
	var suspect atomic.Bool // nothing may listen: at first, and after a request that could not be sent
	suspect.Store(true)
	for first := true; ; first = false {
		if suspect.Swap(false) && (!first && !sleep(ctx, minPause) || !f.awaitListener(ctx, target)) {
			return nil
		}
		free := takeSlots(ctx, slots)
		if free == 0 {
			return nil
		}
		most := free
		if f.opts.Count > 0 {
			most = min(free, f.opts.Count-int(f.reported.Load()+f.running.Load()))
		}
		var leased []client.LeasedJob
		var err error
		if most > 0 {
			leased, err = f.leaseJobs(ctx, topic, most)
		}
		for range free - len(leased) {
			<-slots
		}
		switch {
		case ctx.Err() != nil:
			var s client.Settlement
			for i := range leased {
				s.Release = append(s.Release, client.LeaseRelease{Lease: leased[i].Lease})
			}
			if len(leased) > 0 {
				f.settle(s)
			}
			return nil
		case errors.Is(err, client.ErrConflict):
			return errNotPulled(topic)
		case isRefused(err):
			return err
		case err != nil:
			f.noteServer(err)
			if !sleep(ctx, pause) {
				return nil
			}
			pause = min(2*pause, maxPause)
			continue
		}
		if most <= 0 { // those that run are enough, unless one is given back
			if !sleep(ctx, minPause) {
				return nil
			}
			continue
		}
		f.noteServer(nil)
		pause = minPause
		for i := range leased {
			f.running.Add(1)
			f.inFlight.Go(func() {
				if f.pass(&leased[i], target) {
					suspect.Store(true)
				}
				f.running.Add(-1)
				<-slots
			})
		}
	}
}

// isRefused reports whether the server refuses a request, so that a repeat cannot help.
func isRefused(err error) bool {
	problem, ok := errors.AsType[*client.Problem](err)
	return ok && problem.Status < http.StatusInternalServerError && problem.Status != http.StatusTooManyRequests
}

// takeSlots waits for a free slot, and takes all that are free; zero: ctx has ended.
func takeSlots(ctx context.Context, slots chan struct{}) (taken int) {
	select {
	case slots <- struct{}{}:
		taken++
	case <-ctx.Done():
		return 0
	}
	for {
		select {
		case slots <- struct{}{}:
			taken++
		default:
			return taken
		}
	}
}

// leaseJobs leases up to a number of jobs; none after a wait without one. While the server does not answer it asks for
// no wait, so that an answer is not cut off by the end of a request that was begun before.
func (f *forwarder) leaseJobs(ctx context.Context, topic string, most int) ([]client.LeasedJob, error) {
	wait := pollWait
	f.mu.Lock()
	if f.offline {
		wait = 0
	}
	f.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, wait+answerTime)
	defer cancel()
	return f.opts.Client.Lease(limited, topic, client.LeaseOptions{
		Max: most, Wait: wait, Lease: leaseFor, Lanes: f.opts.Lanes, Request: true,
	})
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
