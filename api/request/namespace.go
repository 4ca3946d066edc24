package request

import (
	"net/http"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
)

// PathNamespace returns the namespace in the path. An invalid name is not found.
func PathNamespace(r *http.Request) (string, error) {
	name := r.PathValue("namespace")
	if !job.IsNamespace(name) {
		return "", response.NewProblem(response.NotFound, "no namespace has such a name: names are 1 to 32 of a-z 0-9 and -, not beginning with -")
	}
	return name, nil
}

// PathNewNamespace returns the namespace in the path, which need not exist.
func PathNewNamespace(r *http.Request) (string, error) {
	name := r.PathValue("namespace")
	if !job.IsNamespace(name) {
		return "", response.Invalid(job.FieldError{Field: "/namespace", Detail: namespaceRule})
	}
	return name, nil
}

// DecodeNamespace reads the quota of a namespace. Members that only answers have are ignored.
func DecodeNamespace(text []byte) (job.Quota, *response.Problem) {
	var d decoder
	var q job.Quota
	ignore := func(string, []byte) {}
	d.read("", text, "a namespace", fields{
		"namespace": ignore,
		"revision":  ignore,
		"quota": merge(&d, &q, "a quota", fields{
			"pending": set(&q.Pending, d.positiveInteger),
			"rate":    set(&q.Rate, d.rate),
		}),
	})
	if q.Pending < 0 {
		d.addErrorOnce("/quota/pending", "must be 1 or more")
	}
	return q, d.problem(nil)
}
