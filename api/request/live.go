package request

import (
	"slices"

	"github.com/ringback/ringback/dispatcher/livetail"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// verdicts are those of attempts.
var verdicts = []string{
	policy.Delivered.String(), policy.Again.String(), policy.Dead.String(),
	policy.Released.String(),
}

// LiveFilter reads the parameters that select live updates.
func (q *Query) LiveFilter() livetail.Filter {
	f := livetail.Filter{Namespace: q.namespace, Topic: q.Get("topic"), Lane: q.Lane(), Verdict: q.Get("verdict")}
	if f.Topic != "" && !job.IsTopic(f.Topic) {
		q.AddError("?topic", "must name a topic")
	}
	if f.Verdict != "" && !slices.Contains(verdicts, f.Verdict) {
		q.AddError("?verdict", "must be delivered, again, dead or released")
	}
	return f
}
