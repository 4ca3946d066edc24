package cli

import (
	"context"
	"errors"

	"github.com/ringback/ringback/cli/forward"
)

// forwardCommand is ringback forward.
type forwardCommand struct {
	forward.Flags
	manyRequests
}

// Run passes jobs on until it is stopped.
func (c *forwardCommand) Run(ctx context.Context, s *session) error {
	err := forward.Command(ctx, &c.Flags,
		forward.Options{Client: s.client, Agent: "Ringback/" + s.Version}, s.out, s.Stderr)
	if unavailable, ok := errors.AsType[*forward.UnavailableError](err); ok {
		return s.failure(ctx, unavailable.Err)
	}
	return err
}
