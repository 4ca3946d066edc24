package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// explainCommand is ringback explain.
type explainCommand struct {
	// Id of the job.
	ID string `arg:""`
	connection
}

// Run says what happened to the job, what it waits for, and what happens next.
func (c *explainCommand) Run(ctx context.Context, e *Environment) error {
	s, err := c.open(e)
	if err != nil {
		return err
	}
	answer, err := s.do(ctx, &apiRequest{Method: http.MethodGet, Path: "/v1/jobs/" + url.PathEscape(c.ID)})
	if err != nil {
		return err
	}
	if c.Output != "" && !s.out.ForPeople() || c.JQ != "" {
		return s.out.One(answer)
	}
	var j job
	if err := json.Unmarshal(answer, &j); err != nil {
		return fmt.Errorf("the answer is not a job: %w", err)
	}
	_, err = fmt.Fprintln(s.Stdout, j.Text(time.Now()))
	return err
}
