package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ringback/ringback/client"
)

// sampleTimeout bounds each of the sample's two requests.
const sampleTimeout = 10 * time.Second

// sample registers a job to /flaky with a short ladder through the API, unless the store has ever had a job.
func (g banner) sample(ctx context.Context) (registered bool, err error) {
	o := client.Options{Timeout: sampleTimeout, MaxRetries: -1}
	if len(g.tokens) > 0 {
		o.Token = string(g.tokens[0])
	}
	c, err := client.New("http://"+g.api, o)
	if err != nil {
		return false, err
	}
	defer c.Close()
	stats, err := c.Stats(ctx)
	if err != nil || stats.Totals.Registered > 0 {
		return false, err
	}
	_, err = c.Register(ctx, client.Job{
		ID: "sample", Topic: "sample", URL: "http://" + g.inbox + "/flaky",
		Ladder: []time.Duration{time.Second, 2 * time.Second},
		Body:   json.RawMessage(`{"hello": "from the sample job"}`),
	})
	return err == nil, err
}
