package request

import (
	"fmt"
	"reflect"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// PutTopic reads a whole policy. Fields left out get their defaults. Secrets, the client certificate and secret headers
// are kept unless they are named, so that a client that reads a policy and puts it back does not lose them, and so is
// the mark of files. Null removes them. A pause is kept, and read-only members are ignored. A topic that is not pushed
// needs its deliver named.
func PutTopic(text []byte, stored policy.Topic) (policy.Topic, *response.Problem) {
	kept := policy.Topic{
		Secrets: stored.Secrets, ClientCert: stored.ClientCert, ManagedBy: stored.ManagedBy,
		Paused: stored.Paused, Pause: stored.Pause,
	}
	return decodeTopic(new(decoder), text, kept, stored, false)
}

// PatchTopic reads a merge patch of a policy (RFC 7396): fields left out are kept, null resets one to its default.
// bodies is set for a token that may read them, and so headers.
func PatchTopic(text []byte, stored policy.Topic, bodies bool) (policy.Topic, *response.Problem) {
	return decodeTopic(&decoder{hidesHeaders: !bodies}, text, stored, stored, true)
}

func decodeTopic(d *decoder, text []byte, t, stored policy.Topic, merge bool) (policy.Topic, *response.Problem) {
	saysDeliver := merge
	d.readSettings(text, "a topic", &t, &stored, merge, fields{"deliver": func(at string, raw []byte) {
		saysDeliver = true
		set(&t.Deliver, func(at string, raw []byte) policy.Deliver { return policy.Deliver(d.name(at, raw)) })(at, raw)
	}})
	if !saysDeliver && !stored.Deliver.Pushes() {
		d.AddError("/deliver", fmt.Sprintf("is required, since the topic is not pushed now: send %q to keep that, or "+
			"%q for requests to a URL", stored.Deliver, policy.DeliverPush))
	}
	if p := d.problem(job.ValidateTopic(t)); p != nil {
		return policy.Topic{}, p
	}
	t.Headers = job.CanonicalHeader(t.Headers)
	canonicalHeaders(t.OnDelivered, t.OnDead)
	if t.OnBacklog != nil {
		canonicalHeaders(&t.OnBacklog.Callback)
	}
	return t, nil
}

// readSettings reads the settings of a topic or a lane into the struct that to points to, as stored is one. The members
// that only answers have are ignored by a PUT, so that it accepts what a GET returned. A patch names only what it
// changes, and is refused.
func (d *decoder) readSettings(text []byte, what string, to, stored any, patch bool, special fields) {
	for name, detail := range readOnly {
		special[name] = func(at string, _ []byte) {
			if patch {
				d.AddError(at, detail)
			}
		}
	}
	special["secrets"] = func(at string, _ []byte) { d.AddError(at, "are set by POST …/secrets") }
	d.readMembers("", text, what, reflect.ValueOf(to).Elem(), source{reflect.ValueOf(stored).Elem(), patch}, special)
}

// hasOwnVerbs is the error of a patch of a pause.
const hasOwnVerbs = "is changed by POST …/pause and POST …/resume"

// readOnly are the members of settings that only answers have, with the error of a patch.
var readOnly = map[string]string{
	"topic": "is read-only", "lane": "is read-only", "revision": "is read-only: send it as If-Match",
	"durability": "is read-only", "updated_at": "is read-only", "updated_by": "is read-only",
	"paused": hasOwnVerbs, "paused_at": hasOwnVerbs, "paused_by": hasOwnVerbs, "pause_note": hasOwnVerbs,
}
