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
	if isStream(r) {
		return a.stream(w, r)
	}
	if checkType(r) != nil {
		return refuse(http.StatusUnsupportedMediaType,
			"send JSON or NDJSON, and the header Content-Type: application/json or application/x-ndjson")
	}
	text, err := readJSON(w, r, maxBatchBytes)
	if err != nil {
		return err
	}
	jobs, n, p := decodeBatch(text)
	if p != nil {
		return p
	}
	w.Header()["Content-Type"] = contentJSON
	o := newOut()
	defer o.free()
	o.open()
	o.array("results")
	b := batch{api: a, out: o, now: time.Now(), written: func() { o.flush(w) }}
	part := make([]entry, 0, min(n, store.MaxBatch))
	for _, raw := range elements(jobs) {
		if part = append(part, entry{text: raw}); len(part) == store.MaxBatch {
			b.take(r.Context(), part)
			part = part[:0]
		}
	}
	b.take(r.Context(), part)
	o.closeArray()
	o.close()
	o.end(w)
	return nil
}

// decodeBatch finds the array of jobs, and counts them.
func decodeBatch(text []byte) (jobs []byte, n int, p *problem) {
	var d decoder
	for name, value := range d.object("", text) {
		switch {
		case string(name) != "jobs":
			d.unknown("", name, "a batch")
		case value[0] != '[':
			d.mistyped("/jobs", value, "an array of jobs")
		default:
			jobs = value
		}
	}
	if jobs == nil && len(d.faults) == 0 {
		d.fault("/jobs", "must be an array of jobs")
	}
	if p := d.problem(nil); p != nil {
		return nil, 0, p
	}
	for range elements(jobs) {
		n++
	}
	if n > maxBatchJobs {
		p := invalid(job.FieldError{Field: "/jobs", Detail: fmt.Sprintf("must be at most %d", maxBatchJobs)})
		p.status = http.StatusRequestEntityTooLarge
		return nil, 0, p
	}
	return jobs, n, nil
}
