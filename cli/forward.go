package cli

import (
	"context"
	"errors"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/cli/forward"
)

// forwardCommand is ringback forward.
type forwardCommand struct {
	forward.Flags
	manyRequests
}

// CheckLine refuses flags that are not valid.
func (c *forwardCommand) CheckLine(command *kong.Node) error {
	if err := c.Check(); err != nil {
		return err
	}
	return c.manyRequests.CheckLine(command)
}

// RunCommand passes jobs on until it is stopped.
func (c *forwardCommand) RunCommand(ctx context.Context, s *session) error {
	err := forward.Command(ctx, &c.Flags,
		forward.Options{Client: s.client, Agent: "Ringback/" + s.Version}, s.out, s.Stderr)
	if unavailable, ok := errors.AsType[*forward.UnavailableError](err); ok {
		return s.failure(ctx, unavailable.Err)
	}
	return err
}
