package request

import (
	"fmt"
	"slices"

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
	return decodeArray(text, "jobs", MaxBatchJobs)
}

// decodeArray returns the array of things in a batch, and their number, at most most.
func decodeArray(text []byte, things string, most int) (all []byte, n int, p *response.Problem) {
	var d decoder
	field, what := "/"+things, "an array of "+things
	for name, value := range d.object("", text) {
		switch {
		case string(name) != things:
			d.unknownField("", name, "a batch", slices.Values([]string{things}))
		case value[0] != '[':
			d.wrongType(field, value, what)
		default:
			all = value
		}
	}
	if all == nil && len(d.errors) == 0 {
		d.AddError(field, "must be "+what)
	}
	if p := d.problem(nil); p != nil {
		return nil, 0, p
	}
	for range Elements(all) {
		n++
	}
	if n > most {
		return nil, 0, response.TooLargeFields(job.FieldError{
			Field: field, Detail: fmt.Sprintf("must be at most %d", most),
		})
	}
	return all, n, nil
}
