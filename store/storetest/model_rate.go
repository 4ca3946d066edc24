package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// window is the starts that a rate counts, in the order in which they stop to count.
type window []starts

// Starts were granted together, and may begin until latest: then they begin to leave the window.
type starts struct {
	latest time.Time
	n      int
}

// ceil returns the clock rounded up to milliseconds.
func (m *Model) ceil() time.Time {
	exact := m.now()
	at := job.Millis(exact)
	if at.Before(exact) {
		at = at.Add(time.Millisecond)
	}
	return at
}

// add adds starts. Those with the same latest become one group.
func (w *window) add(s starts) {
	i, _ := slices.BinarySearchFunc(*w, s, func(a, b starts) int { return a.latest.Compare(b.latest) })
	if i < len(*w) && (*w)[i].latest.Equal(s.latest) {
		(*w)[i].n += s.n
		return
	}
	*w = slices.Insert(*w, i, s)
}

// dropOld drops the starts that no longer count.
func (w *window) dropOld(per time.Duration, now time.Time) {
	*w = slices.DeleteFunc(*w, func(s starts) bool { return !s.countsUntil(per).After(now) })
}

// countsUntil returns when the starts stop to count.
func (s starts) countsUntil(per time.Duration) time.Time { return after(s.latest, per) }

// count returns how many starts count.
func (w window) count(per time.Duration, now time.Time) int {
	n := 0
	for _, s := range w {
		if s.countsUntil(per).After(now) {
			n += s.n
		}
	}
	return n
}

// freeAt returns when another start is allowed; zero: now.
func (w window) freeAt(rate policy.Rate, now time.Time) time.Time {
	if !rate.Limited() {
		return time.Time{}
	}
	tooMany := w.count(rate.Per, now) + 1 - rate.Starts
	for _, s := range w {
		if at := s.countsUntil(rate.Per); tooMany > 0 && at.After(now) {
			if tooMany -= s.n; tooMany <= 0 {
				return at
			}
		}
	}
	return time.Time{}
}

// Permit grants starts, one request after the other.
func (s *modelShard) Permit(
	ctx context.Context, token store.Token, requests []store.PermitRequest,
) ([]store.Permit, error) {
	m := s.model
	bound(len(requests))
	now, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return once(s, now, call{"permit", token}, func() ([]store.Permit, error) {
		permits := make([]store.Permit, len(requests))
		for i, request := range requests {
			permits[i] = s.permit(request, now)
		}
		return permits, nil
	})
}

func (s *modelShard) permit(request store.PermitRequest, now time.Time) store.Permit {
	p := store.Permit{Starts: request.Starts, At: now}
	if !request.Rate.Limited() {
		return p
	}
	name := topicName{request.Namespace, request.Topic}
	w := s.permits[name]
	w.dropOld(request.Rate.Per, now)
	p.Starts = max(0, min(request.Starts, request.Rate.Starts-w.count(request.Rate.Per, now)))
	if p.Starts > 0 {
		w.add(starts{latest: after(s.model.ceil(), request.Slack), n: p.Starts})
	}
	if p.Starts < request.Starts {
		p.Next = w[0].countsUntil(request.Rate.Per).Sub(now)
	}
	s.permits[name] = w
	return p
}
