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
		return "", response.NewProblem(response.NotFound,
			"no namespace has such a name: names are 1 to 32 of a-z 0-9 and -, not beginning with -")
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

// DecodeNamespace reads the store and the quota of a namespace. Members that only answers have are ignored.
func DecodeNamespace(text []byte) (job.Namespace, *response.Problem) {
	var d decoder
	var n job.Namespace
	q := &n.Quota
	ignore := func(string, []byte) {}
	d.read("", text, "a namespace", fields{
		"namespace": ignore,
		"revision":  ignore,
		"store":     set(&n.Store, d.storeName),
		"quota": merge(&d, q, "a quota", fields{
			"pending": set(&q.Pending, d.positiveInteger),
			"bytes":   set(&q.Bytes, d.positiveSize),
			"rate":    set(&q.Rate, d.rate),
		}),
	})
	if q.Pending < 0 {
		d.addErrorOnce("/quota/pending", "must be 1 or more")
	}
	if q.Bytes < 0 {
		d.addErrorOnce("/quota/bytes", `must be 1 byte or more, such as "1GiB"`)
	}
	return n, d.problem(nil)
}

// storeName reads the name of a store.
func (d *decoder) storeName(at string, raw []byte) string {
	name := d.name(at, raw)
	if name != "" && !job.IsNamespace(name) {
		d.addErrorOnce(at, "must be 1 to 32 of a-z 0-9 and -, not beginning with -")
		return ""
	}
	return name
}
