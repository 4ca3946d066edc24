package cli

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// explainCommand is ringback explain.
type explainCommand struct {
	// Id of the job.
	ID string `arg:""`
	connection
}

// RunCommand says what happened to the job, what it waits for, and what happens next.
func (c *explainCommand) RunCommand(ctx context.Context, s *session) error {
	j, err := get[job](ctx, s, "a job", "/v1/jobs/"+url.PathEscape(c.ID), nil)
	if err != nil {
		return err
	}
	if c.Output != "" && !s.out.ForPeople() || c.JQ != "" {
		return s.out.One(j.Raw)
	}
	_, err = fmt.Fprintln(s.Stdout, j.Text(time.Now()))
	return err
}
