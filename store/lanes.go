package store

import (
	"context"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// LaneSettings is the part of a shard that stores the settings of single lanes. They override those of the lane's topic.
type LaneSettings interface {
	// PutLane writes a lane's settings, on the shard of its queue, and returns them with their new revision. Zero settings
	// remove them. A revision other than 0 must equal the stored one (MustNotExist: none may be stored), else the error is
	// ErrVersion. The settings apply to claims that begin after PutLane has returned; each of these reports the revision. A
	// resumed lane is notified when it has due jobs.
	PutLane(ctx context.Context, token Token, lane Lane) (Lane, error)

	// GetLanes reads the settings of up to MaxBatch lanes of this shard: one Lane for each queue, in order, with revision 0
	// where none are stored.
	GetLanes(ctx context.Context, queues []job.Queue) ([]Lane, error)

	// ListLanes lists the lanes of a topic that have settings, in order of name, at most limit (1 to MaxBatch) after the
	// name after.
	ListLanes(ctx context.Context, namespace, topic, after string, limit int) ([]Lane, error)
}

// Lane is the stored settings of a lane.
type Lane struct {
	Queue    job.Queue
	Settings policy.Lane
	// Revision grows with each change, also after a failover that rolled changes back; 0: no settings are stored.
	Revision int64
	// Durability is that of the PutLane that returned the lane, as in job.Job.
	Durability *job.Durability
}
