package request

import (
	"fmt"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// A topicForm reads a policy and merges it into the stored one.
type topicForm struct {
	decoder
	policy.Topic
	headers headerForm
	stored  policy.Topic
	// merge keeps fields that are left out, also those of nested objects.
	merge bool
	// saysDeliver is set if the text names deliver.
	saysDeliver bool
}

// PutTopic reads a whole policy. Fields left out get their defaults. Secrets, the client certificate and secret headers
// are kept unless they are named, so that a client that reads a policy and puts it back does not lose them, and so is
// the mark of files. Null removes them. A pause is kept, and read-only members are ignored. A topic that is not pushed
// needs its deliver named.
func PutTopic(text []byte, stored policy.Topic) (policy.Topic, *response.Problem) {
	kept := policy.Topic{
		Secrets: stored.Secrets, ClientCert: stored.ClientCert, ManagedBy: stored.ManagedBy,
		Paused: stored.Paused, Pause: stored.Pause,
	}
	return decodeTopic(text, topicForm{Topic: kept, stored: stored})
}

// PatchTopic reads a merge patch of a policy (RFC 7396): fields left out are kept, null resets one to its default.
// bodies is set for a token that may read them, and so headers.
func PatchTopic(text []byte, stored policy.Topic, bodies bool) (policy.Topic, *response.Problem) {
	return decodeTopic(text,
		topicForm{decoder: decoder{hidesHeaders: !bodies}, Topic: stored, stored: stored, merge: true})
}

func decodeTopic(text []byte, f topicForm) (policy.Topic, *response.Problem) {
	table := fields{
		"ladder":           set(&f.Ladder, f.ladder),
		"retries":          setPointer(&f.Retries, f.count),
		"jitter":           setPointer(&f.Jitter, f.number),
		"timeout":          set(&f.Timeout, f.positiveDuration),
		"max_age":          set(&f.MaxAge, f.positiveDuration),
		"workers":          set(&f.Workers, f.positiveCount),
		"lane_concurrency": set(&f.LaneConcurrency, f.positiveCount),
		"rate":             set(&f.Rate, f.rate),
		"lane_rate":        set(&f.LaneRate, f.rate),
		"deliver": func(at string, raw []byte) {
			f.saysDeliver = true
			set(&f.Deliver, f.deliver)(at, raw)
		},
		"ordered":    set(&f.Ordered, f.boolean),
		"url":        set(&f.URL, f.text),
		"headers":    f.headers.reader(&f.decoder),
		"give_up_on": set(&f.GiveUpOn, f.texts),
		"success": merge(&f.decoder, &f.Success, "a success rule", fields{
			"status":        set(&f.Success.Status, f.texts),
			"body_equals":   set(&f.Success.BodyEquals, f.text),
			"body_contains": set(&f.Success.BodyContains, f.text),
		}),
		"breaker": merge(&f.decoder, &f.Breaker, "a breaker", fields{
			"failures": setPointer(&f.Breaker.Failures, f.count),
			"open":     set(&f.Breaker.Open, f.positiveDuration),
		}),
		"on_delivered": func(at string, raw []byte) {
			f.OnDelivered = f.callback(at, raw, f.stored.OnDelivered, f.merge)
		},
		"on_dead":    func(at string, raw []byte) { f.OnDead = f.callback(at, raw, f.stored.OnDead, f.merge) },
		"on_backlog": func(at string, raw []byte) { f.OnBacklog = f.backlog(at, raw, f.stored.OnBacklog, f.merge) },
		"client_cert": func(at string, raw []byte) {
			f.ClientCert = f.certificate(at, raw, f.stored.ClientCert, f.merge)
		},
		"keep_delivered": f.retention(&f.KeepDelivered),
		"keep_dead":      f.retention(&f.KeepDead),
		"id_window":      setPointer(&f.IDWindow, f.duration),
		"managed_by":     set(&f.ManagedBy, f.name),
		"secrets":        f.reject(haveOwnPath),
	}
	f.addReadOnly(table, f.merge)
	f.read("", text, "a topic", table)
	if !f.merge && !f.saysDeliver && !f.stored.Deliver.Pushes() {
		f.AddError("/deliver", fmt.Sprintf("is required, since the topic is not pushed now: send %q to keep that, or "+
			"%q for requests to a URL",
			f.stored.Deliver, policy.DeliverPush))
	}
	return f.finish()
}

// deliver reads how a topic's jobs are delivered.
func (d *decoder) deliver(at string, raw []byte) policy.Deliver {
	return policy.Deliver(d.name(at, raw))
}

// addReadOnly adds the members that only answers have. A PUT ignores them, so that it accepts what a GET returned. A
// patch names only what it changes, and is refused.
func (d *decoder) addReadOnly(table fields, patch bool) {
	for name, detail := range map[string]string{
		"topic": "is read-only", "lane": "is read-only", "revision": "is read-only: send it as If-Match",
		"durability": "is read-only", "updated_at": "is read-only", "updated_by": "is read-only",
		"paused": hasOwnVerbs, "paused_at": hasOwnVerbs, "paused_by": hasOwnVerbs, "pause_note": hasOwnVerbs,
	} {
		table[name] = d.reject(detail)
		if !patch {
			table[name] = func(string, []byte) {}
		}
	}
}

// hasOwnVerbs is the error of a patch of a pause.
const hasOwnVerbs = "is changed by POST …/pause and POST …/resume"

// haveOwnPath is the error of a request that sets secrets as a field.
const haveOwnPath = "are set by POST …/secrets"

// retention reads how long ended jobs are kept, and how many.
func (d *decoder) retention(k *policy.Retention) fieldReader {
	return merge(d, k, "a retention", fields{
		"for":       setPointer(&k.For, d.duration),
		"max":       setPointer(&k.Max, d.integer),
		"max_bytes": setPointer(&k.MaxBytes, d.size),
	})
}

// finish merges the headers and validates the policy.
func (f *topicForm) finish() (policy.Topic, *response.Problem) {
	f.headers.moved = job.ChangesOrigin(f.stored.URL, f.URL)
	f.Headers = f.headers.mergeInto(&f.decoder, "/headers", f.stored.Headers, f.merge)
	if p := f.problem(job.ValidateTopic(f.Topic)); p != nil {
		return policy.Topic{}, p
	}
	f.Headers = job.CanonicalHeader(f.Headers)
	canonicalHeaders(f.OnDelivered, f.OnDead)
	if f.OnBacklog != nil {
		canonicalHeaders(&f.OnBacklog.Callback)
	}
	return f.Topic, nil
}
