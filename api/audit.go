package api

import (
	"net/http"
	"strings"

	"github.com/ringback/ringback/access"
	"github.com/ringback/ringback/job"
)

// audit logs a client's change and its result. Registrations are not logged.
func (a *api) audit(r *http.Request, action access.Action, args ...any) {
	p := access.PrincipalOf(r.Context())
	all := []any{"actor", p.Actor, "action", action, "remote", r.RemoteAddr}
	if p.Namespace != job.DefaultNamespace {
		all = append(all, "namespace", p.Namespace)
	}
	a.log.Info("audit", append(all, args...)...)
}

// auditChange logs a change of the job, topic or lane in the path.
func (a *api) auditChange(r *http.Request, action access.Action) {
	args := make([]any, 0, 6)
	for _, name := range []string{"topic", "lane", "id", "namespace"} {
		value := r.PathValue(name)
		if value == "" {
			continue
		}
		key := name
		if name == "namespace" {
			key = "name"
		}
		if name == "id" { // of a job, a token, a work or a secret
			switch {
			case strings.HasPrefix(string(action), "job."):
				key = "job"
			case strings.HasPrefix(string(action), "token."):
				key = "token"
			case strings.HasPrefix(string(action), "work."):
				key = "work"
			default:
				key = "secret_id"
			}
		}
		args = append(args, key, value)
	}
	a.audit(r, action, args...)
}
