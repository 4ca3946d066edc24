package request

import (
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// PutLane reads all settings of a lane. Fields left out are removed; secrets, secret headers, the mark of files and a
// pause are kept. Read-only members are ignored.
func PutLane(text []byte, stored policy.Lane) (policy.Lane, *response.Problem) {
	kept := policy.Lane{
		Secrets: stored.Secrets, ManagedBy: stored.ManagedBy,
		Paused: stored.Paused, Pause: stored.Pause,
	}
	return decodeLane(new(decoder), text, kept, stored, false)
}

// PatchLane reads a merge patch of a lane's settings (RFC 7396). bodies is as for PatchTopic.
func PatchLane(text []byte, stored policy.Lane, bodies bool) (policy.Lane, *response.Problem) {
	return decodeLane(&decoder{hidesHeaders: !bodies}, text, stored, stored, true)
}

func decodeLane(d *decoder, text []byte, l, stored policy.Lane, merge bool) (policy.Lane, *response.Problem) {
	d.readSettings(text, "a lane", &l, &stored, merge, fields{})
	if p := d.problem(job.ValidateLane(l)); p != nil {
		return policy.Lane{}, p
	}
	l.Headers = job.CanonicalHeader(l.Headers)
	return l, nil
}
