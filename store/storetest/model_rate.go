package storetest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// A window is what is remembered of starts that a rate bounds, the first to leave first.
type window []starts

// Starts were granted together, and may begin until latest: then they begin to leave the window.
type starts struct {
	at     time.Time // of the grant, which it names
	latest time.Time
	n      int
}

// ceil is the next whole millisecond of the clock, for what must not be short by a part of one.
func (m *Model) ceil() time.Time {
	exact := m.now()
	at := job.Millis(exact)
	if at.Before(exact) {
		at = at.Add(time.Millisecond)
	}
	return at
}

// add remembers starts; those of one moment together.
func (w *window) add(s starts) {
	i, _ := slices.BinarySearchFunc(*w, s, func(a, b starts) int { return cmp.Or(a.latest.Compare(b.latest), a.at.Compare(b.at)) })
	if i < len(*w) && (*w)[i].at.Equal(s.at) && (*w)[i].latest.Equal(s.latest) {
		(*w)[i].n += s.n
		return
	}
	*w = slices.Insert(*w, i, s)
}

// shut drops the starts that count no more.
func (w *window) shut(per time.Duration, now time.Time) {
	*w = slices.DeleteFunc(*w, func(s starts) bool { return s.n == 0 || !s.leaves(per).After(now) })
}

// leaves is when they count no more.
func (s starts) leaves(per time.Duration) time.Time { return after(s.latest, per) }

// count is how many starts count.
func (w window) count(per time.Duration, now time.Time) int {
	n := 0
	for _, s := range w {
		if s.leaves(per).After(now) {
			n += s.n
		}
	}
	return n
}

// free is when another start fits, zero when one does now.
func (w window) free(rate policy.Rate, now time.Time) time.Time {
	if !rate.Limited() {
		return time.Time{}
	}
	tooMany := w.count(rate.Per, now) + 1 - rate.Starts
	for _, s := range w {
		if at := s.leaves(rate.Per); tooMany > 0 && at.After(now) {
			if tooMany -= s.n; tooMany <= 0 {
				return at
			}
		}
	}
	return time.Time{}
}

// Permit answers ask after ask.
func (s *modelShard) Permit(ctx context.Context, token store.Token, asks []store.PermitRequest) ([]store.Permit, error) {
	m := s.model
	bound(len(asks))
	now, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return once(s, now, call{"permit", token}, func() ([]store.Permit, error) {
		permits := make([]store.Permit, len(asks))
		for i, ask := range asks {
			permits[i] = s.permit(ask, now)
		}
		return permits, nil
	})
}

func (s *modelShard) permit(ask store.PermitRequest, now time.Time) store.Permit {
	p := store.Permit{Starts: ask.Starts, At: now, Slack: ask.Slack}
	if !ask.Rate.Limited() {
		return p
	}
	name := topicName{ask.Namespace, ask.Topic}
	w := s.permits[name]
	w.shut(ask.Rate.Per, now)
	for _, back := range ask.Back {
		if after(after(back.At, back.Slack), ask.Rate.Per).After(now) {
			w.giveBack(back) // else it has left, and others may look the same
		}
	}
	w.shut(ask.Rate.Per, now) // what was given back whole
	p.Starts = max(0, min(ask.Starts, ask.Rate.Starts-w.count(ask.Rate.Per, now)))
	if p.Starts > 0 {
		w.add(starts{at: now, latest: after(s.model.ceil(), ask.Slack), n: p.Starts})
	}
	if p.Starts < ask.Starts {
		p.Next = w[0].leaves(ask.Rate.Per).Sub(now)
	}
	s.permits[name] = w
	return p
}

// unstart gives the start of a held job back, unless it counts no more.
func (s *modelShard) unstart(r *record, slack time.Duration, now time.Time) {
	rate := s.limits(r.queue.name).Rate
	if !r.rated || !rate.Limited() || !after(after(r.claimed, slack), rate.Per).After(now) {
		return
	}
	r.queue.window.giveBack(store.Permit{Starts: 1, At: r.claimed, Slack: slack})
	r.queue.window.shut(rate.Per, now)
}

// giveBack takes starts out of the grants made at a moment that may be meant: first of those that leave first, so that what
// stays counts no shorter than it should, whichever of two grants of one millisecond it was.
func (w window) giveBack(back store.Permit) {
	for i := range w {
		if w[i].at.Equal(back.At) && !w[i].latest.Before(after(back.At, back.Slack)) && back.Starts > 0 {
			n := min(back.Starts, w[i].n)
			w[i].n -= n
			back.Starts -= n
		}
	}
}
