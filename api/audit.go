package api

import (
	"net/http"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
)

// audit logs a client's change and its result. Registrations are not logged.
func (a *api) audit(r *http.Request, action access.Action, args ...any) {
	p := request.PrincipalOf(r.Context())
	all := []any{"actor", p.Actor, "token", p.TokenID, "action", action, "remote", r.RemoteAddr}
	if p.Namespace != job.DefaultNamespace {
		all = append(all, "namespace", p.Namespace)
	}
	a.log.Info("audit", append(all, args...)...)
}

// auditKeys are the names in audit lines of the variables in paths.
var auditKeys = []struct{ variable, key string }{
	{"topic", "topic"},
	{"lane", "lane"},
	{"schedule", "schedule"},
	{"namespace", "name"},
}

// auditChange logs a change of what the path names.
func (a *api) auditChange(r *http.Request, action access.Action) {
	args := make([]any, 0, 6)
	for _, k := range auditKeys {
		if value := r.PathValue(k.variable); value != "" {
			args = append(args, k.key, value)
		}
	}
	if id := r.PathValue("id"); id != "" {
		key := "id" // of a token
		if action == access.RemoveSecret {
			key = "secret_id"
		}
		args = append(args, key, id)
	}
	a.audit(r, action, args...)
}

// logForbidden logs a request that its token does not allow, at most one a second.
func (a *api) logForbidden(r *http.Request, problem *response.Problem) {
	p := request.PrincipalOf(r.Context())
	a.forbiddenLog.Warn("request forbidden", "actor", p.Actor, "token", p.TokenID, "remote",
		r.RemoteAddr, "method", r.Method, "route", r.Pattern, "topic", r.PathValue("topic"), "reason", problem.Detail)
}
