package dispatcher

import (
	"fmt"

	"github.com/ringback/ringback/dispatcher/documents"
	"github.com/ringback/ringback/job"
)

// lookup finds stored topics, and the URLs of lanes, for one call.
type lookup struct {
	documents.Lookup

	lanes    map[job.Queue]string // the URLs of lanes that jobs without one name
	lanesErr error                // of the read
}

// newLookup returns a lookup without lanes.
func (d *Dispatcher) newLookup() *lookup { return &lookup{Lookup: documents.Lookup{Cache: d.policies}} }

// laneURL returns a lane's URL; empty: none.
func (l *lookup) laneURL(q job.Queue) (string, error) {
	if q.Lane == "" {
		return "", nil
	}
	if l.lanesErr != nil {
		return "", fmt.Errorf("look up lane %s: %w", q.Lane, l.lanesErr)
	}
	return l.lanes[q], nil
}
