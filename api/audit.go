package api

import (
	"net/http"
	"strings"
)

// audit logs a change that a client made, registrations excepted: who asked for what, and what came of it.
func (a *api) audit(r *http.Request, action string, args ...any) {
	a.log.Info("audit", append([]any{"action", action, "remote", r.RemoteAddr}, args...)...)
}

// auditChange logs a change to what the path names: a job, or the settings of a topic or lane.
func (a *api) auditChange(r *http.Request, action string) {
	args := make([]any, 0, 6)
	for _, name := range []string{"topic", "lane", "id"} {
		value := r.PathValue(name)
		if value == "" {
			continue
		}
		key := name
		if name == "id" { // of a job, or of a secret
			if key = "secret_id"; strings.HasPrefix(action, r.Method+" /v1/jobs/") {
				key = "job"
			}
		}
		args = append(args, key, value)
	}
	a.audit(r, action, args...)
}
