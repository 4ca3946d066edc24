package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/client"
)

// tailCommand is ringback tail.
type tailCommand struct {
	// Only this topic.
	Topic string `placeholder:"TOPIC"`
	// Only this lane, and the pauses of its topic.
	Lane string `placeholder:"LANE"`
	// Only attempts with this verdict: delivered, again, dead or released.
	Verdict string `placeholder:"VERDICT"`
	liveFilter
	// End after this number of updates. Default: never.
	Count int `in:"none" placeholder:"N"`
	connection
}

// reconnectPause is the least time between the end of a stream and the next one.
const reconnectPause = 2 * time.Second

// RunCommand prints updates until it is stopped. It connects again when the server ends a stream.
func (c *tailCommand) RunCommand(ctx context.Context, s *session, r *apiRequest) error {
	if s.out.Format() == output.Curl {
		return s.printRequest(r)
	}
	once, err := s.newClient(-1) // a server that is not there ends the command, but not one that went away
	if err != nil {
		return err
	}
	left := c.Count
	for {
		connected, err := c.watch(ctx, s, once, &left)
		if ctx.Err() != nil || errors.Is(err, errEnough) {
			return nil //nolint:nilerr // stopping it is how it ends
		}
		if err = s.failure(ctx, err); !connected || codeOf(err) != Unavailable {
			return err
		}
		s.say("%s; connecting again", output.Printable(FirstLine(err)))
		if !pause(ctx, reconnectPause+rand.N(reconnectPause)) {
			return nil
		}
	}
}

// errEnough ends a stream after the updates that were asked for.
var errEnough = errors.New("enough updates")

// watch prints the updates of one connection, and returns why it ended and whether the server has answered.
func (c *tailCommand) watch(ctx context.Context, s *session, from *client.Client, left *int) (connected bool, _ error) {
	for update, err := range from.Stream(ctx, client.StreamOptions{Topic: c.Topic, Lane: c.Lane, Verdict: c.Verdict}) {
		if err != nil {
			return connected, err
		}
		if update.Kind == "connected" {
			if connected = true; s.out.ForPeople() {
				s.say("watching %s", s.target.Server)
			}
			continue
		}
		if !c.Selects(update) {
			continue
		}
		if err := s.printUpdate(update); err != nil {
			return connected, err
		}
		if *left--; *left == 0 {
			return connected, errEnough
		}
	}
	return connected, nil
}

// printUpdate prints an update: a line for people, or the update with its kind as update.
func (s *session) printUpdate(update *client.StreamUpdate) error {
	line := liveLine(update)
	if line == "" && s.out.ForPeople() {
		return nil
	}
	all := requestFields{}
	if err := json.Unmarshal(update.Data, &all); err != nil {
		return fmt.Errorf("an update is not an object: %w", err)
	}
	all.Set("update", update.Kind)
	return s.out.OneLine(line, all.Encode())
}
