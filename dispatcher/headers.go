package dispatcher

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Headers that carry secrets are stored sealed, each together with the origin that it was given for: that of the URL to
// which the job, topic, lane or callback that names it leads at that moment. They are opened at the attempt, which sends
// none to another origin. So it does not matter by which way a URL was changed.

// headerAAD is the place at which a header's secret is sealed. It is the same wherever the header is stored, since a
// callback's goes from settings into jobs.
func headerAAD(name string) string { return "headers/" + name }

// sealHeaders gives headers in the form in which they are stored. Secrets that are sealed already stay bound to the
// origin that they were given for; the others get this one, empty where they may go to any.
func (d *Dispatcher) sealHeaders(header map[string][]string, origin string) map[string][]string {
	if !hasPlainSecret(header) {
		return header
	}
	stored := maps.Clone(header)
	for name, values := range header {
		if _, sealed := job.Sealed(values); !sealed && job.SecretHeader(name) {
			text := job.HeaderSecret{Origin: origin, Values: values}.Text()
			stored[name] = job.SealedValues(d.opts.Seal.Seal(text, headerAAD(name)))
		}
	}
	return stored
}

// hasPlainSecret reports whether headers hold secrets that are not sealed.
func hasPlainSecret(header map[string][]string) bool {
	for name, values := range header {
		if _, sealed := job.Sealed(values); !sealed && job.SecretHeader(name) {
			return true
		}
	}
	return false
}

// sealCallbacks seals the headers of callbacks, in copies of them.
func (d *Dispatcher) sealCallbacks(all ...**policy.Callback) {
	for _, c := range all {
		if *c == nil || !hasPlainSecret((*c).Headers) {
			continue
		}
		stored := **c
		stored.Headers = d.sealHeaders(stored.Headers, job.Origin(stored.URL))
		*c = &stored
	}
}

// hasStaleHeader reports whether headers hold a secret that is not sealed under the current key.
func (d *Dispatcher) hasStaleHeader(header map[string][]string) bool {
	for name, values := range header {
		if sealed, ok := job.Sealed(values); ok && !d.opts.Seal.Current(sealed) || !ok && job.SecretHeader(name) {
			return true
		}
	}
	return false
}

// cannotSealHeaders reports whether some of the headers are sealed, and this process could not seal another.
func (d *Dispatcher) cannotSealHeaders(header map[string][]string) bool {
	if d.opts.Seal.Encrypts() {
		return false
	}
	for _, values := range header {
		if sealed, ok := job.Sealed(values); ok && !d.opts.Seal.Current(sealed) {
			return true
		}
	}
	return false
}

// resealHeaders gives headers with their secrets sealed under the current key, as far as they can be opened.
func (d *Dispatcher) resealHeaders(header map[string][]string, owner secretScope) (anew map[string][]string, changed bool) {
	anew = header
	for name, values := range header {
		sealed, ok := job.Sealed(values)
		if !ok || d.opts.Seal.Current(sealed) {
			continue
		}
		text, err := d.opts.Seal.Open(sealed, headerAAD(name))
		if err != nil {
			d.log.Error("a header could not be sealed under the current key", "place", owner.aad(headerAAD(name)), "err", err)
			continue
		}
		if !changed {
			anew, changed = maps.Clone(header), true
		}
		anew[name] = job.SealedValues(d.opts.Seal.Seal(text, headerAAD(name)))
	}
	return anew, changed
}

// openHeader opens a sealed header.
func (d *Dispatcher) openHeader(name, sealed string) (job.HeaderSecret, error) {
	text, err := d.opts.Seal.Open(sealed, headerAAD(name))
	if err != nil {
		return job.HeaderSecret{}, fmt.Errorf("open the header %s: %w", name, err)
	}
	return job.ParseHeaderSecret(text), nil
}

// openForAttempt is openHeader for an attempt, which waits when it fails.
func (d *Dispatcher) openForAttempt(q job.Queue, name, sealed string) (job.HeaderSecret, error) {
	secret, err := d.openHeader(name, sealed)
	if err != nil && d.unopenedLog.allow() {
		d.log.Error("cannot open a secret header; deliveries of this lane are held", "topic", q.Topic, "lane", q.Lane, "err", err)
	}
	return secret, err
}

// A logLimiter allows one log line per logEvery.
type logLimiter struct{ last atomic.Int64 }

// logEvery is the shortest interval between two log lines of one kind.
const logEvery = 10 * time.Second

func (l *logLimiter) allow() bool {
	now, last := time.Now().UnixNano(), l.last.Load()
	return (last == 0 || now-last >= int64(logEvery)) && l.last.CompareAndSwap(last, now)
}

// target is the URL that a job of a queue has: its own, else its lane's, else its topic's.
func (d *Dispatcher) target(ctx context.Context, q job.Queue, own string) (string, error) {
	if own != "" {
		return own, nil
	}
	lane, err := d.Lane(ctx, q)
	if err != nil {
		return "", err
	}
	return d.laneTarget(ctx, q, lane.Settings.URL)
}

// laneTarget is the URL of jobs of a lane without one: the lane's own, else its topic's.
func (d *Dispatcher) laneTarget(ctx context.Context, q job.Queue, own string) (string, error) {
	if own != "" {
		return own, nil
	}
	topic, _, err := (&lookup{policies: d.policies}).find(ctx, topicName{q.Namespace, q.Topic})
	if err != nil {
		return "", fmt.Errorf("look up topic %s: %w", q.Topic, err)
	}
	return topic.Policy.URL, nil
}
