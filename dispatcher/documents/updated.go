package documents

import (
	"context"
	"time"

	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Updated returns the last change of settings that are written for a context: now, by its client. Without a client, as
// when secrets are resealed, it is that of before.
func Updated(ctx context.Context, before policy.Update) policy.Update {
	p := access.PrincipalOf(ctx)
	if p == access.Nobody {
		return before
	}
	return policy.Update{At: job.Millis(time.Now()), By: p.Actor}
}
