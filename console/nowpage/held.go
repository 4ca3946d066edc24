package nowpage

import (
	"context"
	"sync"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/sampler"
	"github.com/ringback/ringback/console/web"
)

const (
	// heldShare bounds the part of the time in which an audience searches for held lanes: a search of many lanes takes 100 ms, and the
	// page is rendered every 2 s.
	heldShare = 50
	// longestHeld bounds the age of an answer.
	longestHeld = 10 * time.Second
)

// heldCache has the last answers about the lanes that hold jobs back, by audience. It is safe for concurrent use.
type heldCache struct {
	mu  sync.Mutex
	all map[string]heldAnswer
}

// heldAnswer is an answer and when it is too old.
type heldAnswer struct {
	lanes *client.HeldLanes
	until time.Time
}

// read returns the lanes that hold jobs back: those of the last answer while that is recent for what it cost.
func (c *heldCache) read(ctx context.Context, v *web.Visit) (*client.HeldLanes, error) {
	c.mu.Lock()
	known := c.all[v.Audience]
	c.mu.Unlock()
	began := time.Now()
	if began.Before(known.until) {
		return known.lanes, nil
	}
	lanes, err := v.API.HeldLanes(ctx, client.HeldQuery{})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, renews := c.all[v.Audience]; c.all == nil || !renews && len(c.all) >= sampler.MaxAudiences {
		c.all = make(map[string]heldAnswer)
	}
	c.all[v.Audience] = heldAnswer{lanes, now.Add(min(heldShare*now.Sub(began), longestHeld))}
	return lanes, nil
}
