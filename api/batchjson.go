package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// batch takes many jobs and answers a result for each, in order: as one JSON text here, or as a stream.
func (a *api) batch(w http.ResponseWriter, r *http.Request) error {
	if IsNDJSON(r) {
		return a.stream(w, r)
	}
	if checkType(r) != nil {
		return NewProblem(http.StatusUnsupportedMediaType,
			"send JSON or NDJSON, and the header Content-Type: application/json or application/x-ndjson")
	}
	text, err := ReadJSON(w, r, MaxBatchBytes)
	if err != nil {
		return err
	}
	jobs, n, p := DecodeBatch(text)
	if p != nil {
		return p
	}
	w.Header()["Content-Type"] = ContentTypeJSON
	o := NewBuffer()
	defer o.Free()
	o.Open()
	o.Array("results")
	b := batch{api: a, out: o, now: time.Now(), written: func() { o.Flush(w) }}
	part := make([]batchItem, 0, min(n, store.MaxBatch))
	for _, raw := range Elements(jobs) {
		if part = append(part, batchItem{text: raw}); len(part) == store.MaxBatch {
			b.register(r.Context(), part)
			part = part[:0]
		}
	}
	b.register(r.Context(), part)
	o.CloseArray()
	o.Close()
	o.End(w)
	return nil
}

// DecodeBatch finds the array of jobs, and counts them.
func DecodeBatch(text []byte) (jobs []byte, n int, p *Problem) {
	var d decoder
	for name, value := range d.object("", text) {
		switch {
		case string(name) != "jobs":
			d.unknownField("", name, "a batch")
		case value[0] != '[':
			d.wrongType("/jobs", value, "an array of jobs")
		default:
			jobs = value
		}
	}
	if jobs == nil && len(d.errors) == 0 {
		d.AddError("/jobs", "must be an array of jobs")
	}
	if p := d.problem(nil); p != nil {
		return nil, 0, p
	}
	for range Elements(jobs) {
		n++
	}
	if n > MaxBatchJobs {
		p := Invalid(job.FieldError{Field: "/jobs", Detail: fmt.Sprintf("must be at most %d", MaxBatchJobs)})
		p.Status = http.StatusRequestEntityTooLarge
		return nil, 0, p
	}
	return jobs, n, nil
}
