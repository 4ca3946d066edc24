package request

import (
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// A laneForm is a lane's settings as a client described them, on their way over those that are stored.
type laneForm struct {
	decoder
	policy.Lane
	headers headerForm
}

// PutLane reads all of a lane's settings. What it leaves out the topic says again, but secrets, and headers that
// carry some, stay, and so does a pause.
func PutLane(text []byte, stored policy.Lane) (policy.Lane, *response.Problem) {
	f := laneForm{Lane: policy.Lane{Secrets: stored.Secrets, Paused: stored.Paused}}
	f.read(text)
	return f.finish(stored, false)
}

// PatchLane reads a change (RFC 7396).
func PatchLane(text []byte, stored policy.Lane) (policy.Lane, *response.Problem) {
	f := laneForm{Lane: stored}
	f.read(text)
	return f.finish(stored, true)
}

func (f *laneForm) read(text []byte) {
	for name, value := range f.object("", text) {
		switch {
		case string(name) == "secrets":
			f.AddError("/secrets", haveOwnPath)
		case !f.field(string(name), value):
			f.unknownField("", name, "a lane")
		}
	}
}

// field takes in one field; false when there is no such.
func (f *laneForm) field(name string, value []byte) bool {
	null := isNull(value)
	switch at := "/" + name; name {
	case "url":
		f.URL = optional(null, func() string { return f.text(at, value) })
	case "headers":
		f.headers.read(&f.decoder, at, value)
	case "lane_concurrency":
		f.LaneConcurrency = optional(null, func() int { return outOfRangeIfZero(clampInt(f.integer(at, value))) })
	case "lane_rate":
		f.LaneRate = optional(null, func() policy.Rate { return f.rate(at, value) })
	case "paused":
		f.Paused = optional(null, func() bool { return f.boolean(at, value) })
	default:
		return false
	}
	return true
}

// finish puts the headers over the stored ones and checks the whole.
func (f *laneForm) finish(stored policy.Lane, merge bool) (policy.Lane, *response.Problem) {
	f.headers.moved = job.ChangesOrigin(stored.URL, f.URL)
	f.Headers = f.headers.mergeInto(&f.decoder, "/headers", stored.Headers, merge)
	if p := f.problem(job.ValidateLane(f.Lane)); p != nil {
		return policy.Lane{}, p
	}
	f.Headers = job.CanonicalHeader(f.Headers)
	return f.Lane, nil
}
