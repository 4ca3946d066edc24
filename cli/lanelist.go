package cli

import (
	"context"
	"net/http"
	"net/url"
)

// laneListCommand is ringback lane list.
type laneListCommand struct {
	// Topic of the lanes. Default, with --failing: all.
	Topic string `arg:"" optional:""`
	// List the lanes whose receivers fail instead, with the newest answer.
	Failing bool
	// Only lanes that subscribe to events of this type.
	Type string `placeholder:"TYPE"`
	page
	connection
}

// RunCommand lists lanes.
func (c *laneListCommand) RunCommand(ctx context.Context, s *session) error {
	r := &apiRequest{Method: http.MethodGet, Query: url.Values{}}
	view := "lanes"
	switch {
	case c.Failing && c.Type != "":
		return usagef("--failing cannot be combined with --type")
	case c.Failing:
		view, r.Path = "troubled", "/v1/lanes/troubled"
		r.Query.Set("code", "failing")
		if c.Topic != "" {
			r.Query.Set("topic", c.Topic)
		}
	case c.Topic == "":
		return usagef("a topic is required, or --failing")
	default:
		r.Path = "/v1/topics/" + url.PathEscape(c.Topic) + "/lanes"
		if c.Type != "" {
			r.Query.Set("type", c.Type)
		}
	}
	_, err := s.list(ctx, r, views[view], c.Limit)
	return err
}
