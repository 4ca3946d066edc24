package request

import (
	"net/http"
	"reflect"

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
		return "", response.Invalid(job.FieldError{Field: "/namespace", Detail: job.NamespaceRule})
	}
	return name, nil
}

// DecodeNamespace reads the store and the quota of a namespace. Members that only answers have are ignored.
func DecodeNamespace(text []byte) (job.Namespace, *response.Problem) {
	var d decoder
	var n job.Namespace
	ignore := func(string, []byte) {}
	v := reflect.ValueOf(&n).Elem()
	d.readMembers("", text, "a namespace", v, source{stored: v}, fields{
		"namespace": ignore, "revision": ignore, "usage": ignore,
	})
	return n, d.problem(job.Check(n))
}
