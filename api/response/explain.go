package response

import "github.com/ringback/ringback/job"

// Explanation writes what applies to a job now, and what it waits for; of nil, null members.
func (o *Buffer) Explanation(x *job.Explanation) {
	if x == nil {
		x = &job.Explanation{}
	}
	e := x.Effective
	o.objectOrNull("effective", e != nil, func() { o.effective(e) })
	if e != nil {
		o.Number("retries_left", int64(e.RetriesLeft))
	} else {
		o.Null("retries_left")
	}
	w := x.WaitingFor
	o.objectOrNull("waiting_for", w != nil, func() {
		o.Text("kind", w.Code.Kind())
		o.obstacle(w)
	})
}

// effective writes the settings of a job's next attempt.
func (o *Buffer) effective(e *job.Effective) {
	o.TextOrNull("url", e.URL)
	o.Key("ladder")
	o.durations(e.Terms.Ladder)
	o.Number("retries", int64(*e.Terms.Retries))
	o.Duration("timeout", e.Terms.Timeout)
	o.DurationOrNull("max_age", e.Terms.MaxAge)
	success := e.Terms.Success.WithDefaults()
	o.objectOrNull("success", true, func() { o.Members(&success) })
	o.texts("give_up_on", e.Terms.GiveUpOn)
}

// obstacle writes what keeps jobs from running.
func (o *Buffer) obstacle(x *job.Obstacle) {
	o.Text("code", string(x.Code))
	o.Text("scope", x.Code.Scope())
	o.Text("detail", x.Detail())
	o.Text("facts", x.Facts+".")
	o.objectOrNull("remedy", x.Remedy.Action != "", func() { o.Members(&x.Remedy) })
	o.Time("until", x.Until)
	o.Time("since", x.Since)
	o.TextOrNull("by", x.By)
	o.TextOrNull("note", x.Note)
}
