package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// checkPage is the number of lanes of a page.
const checkPage = 200

// checkLanes compares the lanes of a topic with the topic's counts: each unfinished job counts in one lane.
func checkLanes(ctx context.Context, shard store.Shard, row store.TopicStats) error {
	var waiting, running, open int64
	for after := ""; ; {
		page, err := shard.LaneStats(ctx, row.Namespace, row.Topic, after, checkPage)
		if err != nil {
			return fmt.Errorf("read the lanes: %w", err)
		}
		if len(page) == 0 {
			break
		}
		for _, lane := range page {
			if lane.Lane <= after {
				return fmt.Errorf("lane %s is listed after %s", lane.Lane, after)
			}
			after = lane.Lane
			waiting += lane.Scheduled + lane.Ready
			running += lane.Running
			if lane.BreakerOpen {
				open++
			}
		}
	}
	var breaches []error
	if waiting != row.Scheduled+row.Ready || running != row.Running {
		breaches = append(breaches,
			fmt.Errorf("the lanes count %d waiting and %d running jobs: %+v", waiting, running, row))
	}
	if open > row.OpenBreakers { // a lane without unfinished jobs is not listed
		breaches = append(breaches,
			fmt.Errorf("%d lanes with an open breaker are listed, %d counted", open, row.OpenBreakers))
	}
	return errors.Join(breaches...)
}

// checkSettings compares the settings of lanes that GetLanes and ListLanes return.
func checkSettings(ctx context.Context, shard store.Shard, row store.TopicStats) error {
	for after := ""; ; {
		page, err := store.ListLanes(ctx, shard, row.Namespace, row.Topic, after, checkPage)
		if err != nil {
			return fmt.Errorf("list the lanes' settings: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		var queues []job.Queue
		for _, lane := range page {
			if lane.Queue.Lane <= after || lane.Revision == 0 || lane.Settings.IsZero() {
				return fmt.Errorf("the settings %+v are listed after %s", lane, after)
			}
			after = lane.Queue.Lane
			queues = append(queues, lane.Queue)
		}
		read, err := store.GetLanes(ctx, shard, queues)
		if err != nil {
			return fmt.Errorf("read the lanes' settings: %w", err)
		}
		for i, lane := range page {
			if read[i].Queue != lane.Queue || read[i].Revision != lane.Revision {
				return fmt.Errorf("the settings %+v are listed, and read as %+v", lane, read[i])
			}
		}
	}
}

// checkReason checks a job's reason.
func checkReason(j job.Job) error {
	var wrong bool
	switch j.State {
	case job.Dead:
		wrong = j.Reason == "" || j.Reason == job.ReasonCancelled
	case job.Cancelled:
		wrong = j.Reason != job.ReasonCancelled
	default:
		wrong = j.Reason != policy.Reason("")
	}
	if wrong {
		return fmt.Errorf("%s is %s because of %q", j.ID, j.State, j.Reason)
	}
	return nil
}
