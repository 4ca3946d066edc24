package request

import (
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// A laneForm reads a lane's settings and merges them into the stored ones.
type laneForm struct {
	decoder
	policy.Lane
	headers headerForm
}

// PutLane reads all settings of a lane. Fields left out are removed; secrets, secret headers, the mark of files and a
// pause are kept. Read-only members are ignored.
func PutLane(text []byte, stored policy.Lane) (policy.Lane, *response.Problem) {
	f := laneForm{Lane: policy.Lane{
		Secrets: stored.Secrets, ManagedBy: stored.ManagedBy,
		Paused: stored.Paused, Pause: stored.Pause,
	}}
	f.read(text, false)
	return f.finish(stored, false)
}

// PatchLane reads a merge patch of a lane's settings (RFC 7396). bodies is as for PatchTopic.
func PatchLane(text []byte, stored policy.Lane, bodies bool) (policy.Lane, *response.Problem) {
	f := laneForm{decoder: decoder{hidesHeaders: !bodies}, Lane: stored}
	f.read(text, true)
	return f.finish(stored, true)
}

// read reads the fields of a lane.
func (f *laneForm) read(text []byte, patch bool) {
	table := fields{
		"url":              set(&f.URL, f.text),
		"headers":          f.headers.reader(&f.decoder),
		"lane_concurrency": set(&f.LaneConcurrency, f.positiveCount),
		"lane_rate":        set(&f.LaneRate, f.rate),
		"ordered":          set(&f.Ordered, f.boolean),
		"managed_by":       set(&f.ManagedBy, f.name),
		"secrets":          f.reject(haveOwnPath),
	}
	f.addReadOnly(table, patch)
	f.decoder.read("", text, "a lane", table)
}

// finish merges the headers and validates the settings.
func (f *laneForm) finish(stored policy.Lane, merge bool) (policy.Lane, *response.Problem) {
	f.headers.moved = job.ChangesOrigin(stored.URL, f.URL)
	f.Headers = f.headers.mergeInto(&f.decoder, "/headers", stored.Headers, merge)
	if p := f.problem(job.ValidateLane(f.Lane)); p != nil {
		return policy.Lane{}, p
	}
	f.Headers = job.CanonicalHeader(f.Headers)
	return f.Lane, nil
}
