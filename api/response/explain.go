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
	o.objectOrNull("waiting_for", w != nil, func() { o.wait(w) })
}

// effective writes the settings of a job's next attempt.
func (o *Buffer) effective(e *job.Effective) {
	o.TextOrNull("url", e.URL)
	o.durations("ladder", e.Terms.Ladder)
	o.Number("retries", int64(*e.Terms.Retries))
	o.Duration("timeout", e.Terms.Timeout)
	o.DurationOrNull("max_age", e.Terms.MaxAge)
	o.success("success", e.Terms.Success.WithDefaults())
	o.texts("give_up_on", e.Terms.GiveUpOn)
}

// wait writes what keeps a job from running.
func (o *Buffer) wait(w *job.Wait) {
	o.Text("kind", string(w.Kind))
	o.Time("until", w.Until)
	o.Text("detail", w.Detail)
}
