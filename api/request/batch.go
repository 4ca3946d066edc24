package request

import (
	"fmt"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
)

// Bounds of a batch.
const (
	MaxBatchBytes = 16 << 20
	MaxBatchJobs  = 10_000
)

// DecodeBatch returns the array of jobs in a batch, and their number.
func DecodeBatch(text []byte) (jobs []byte, n int, p *response.Problem) {
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
		return nil, 0, response.TooLargeFields(job.FieldError{Field: "/jobs", Detail: fmt.Sprintf("must be at most %d",
			MaxBatchJobs)})
	}
	return jobs, n, nil
}
