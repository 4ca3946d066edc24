package dispatcher

import (
	"context"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// PutTopic writes a topic's policy, whatever is stored. A revision other than 0 must be the current one.
func (d *Dispatcher) PutTopic(ctx context.Context, t store.Topic) (store.Topic, error) {
	return d.putTopic(ctx, t, policy.Topic{}, policy.Update{}, false)
}
