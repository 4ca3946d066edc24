package api

import (
	"net/http"
	"strings"
)

// audit logs a client's change and its result. Registrations are not logged.
func (a *api) audit(r *http.Request, action string, args ...any) {
	a.log.Info("audit", append([]any{"action", action, "remote", r.RemoteAddr}, args...)...)
}

// auditChange logs a change of the job, topic or lane in the path.
func (a *api) auditChange(r *http.Request, action string) {
	args := make([]any, 0, 6)
	for _, name := range []string{"topic", "lane", "id"} {
		value := r.PathValue(name)
		if value == "" {
			continue
		}
		key := name
		if name == "id" { // of a job or a secret
			if key = "secret_id"; strings.HasPrefix(action, r.Method+" /v1/jobs/") {
				key = "job"
			}
		}
		args = append(args, key, value)
	}
	a.audit(r, action, args...)
}
