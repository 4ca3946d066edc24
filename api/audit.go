package api

import "net/http"

// audit logs a change to settings or to many jobs: who asked for what, and what came of it. Changes to single jobs are in
// the job's own record.
func (a *api) audit(r *http.Request, action string, args ...any) {
	a.log.Info("audit", append([]any{"action", action, "remote", r.RemoteAddr}, args...)...)
}
