package app

import (
	"fmt"
	"slices"
	"strings"
)

// A Role is a part of the work that a process does. Processes on one Redis may share the roles out.
type Role string

// The roles. A process with RoleAPI takes jobs and answers the API, one with RoleWorker carries and delivers. A worker
// alone serves nothing but its health.
const (
	RoleAPI    Role = "api"
	RoleWorker Role = "worker"
)

// ParseRoles reads a list such as "api,worker", in any order. A role that is named twice counts once.
func ParseRoles(text string) ([]Role, error) {
	var roles []Role
	for name := range strings.SplitSeq(text, ",") {
		role := Role(strings.TrimSpace(name))
		if role != RoleAPI && role != RoleWorker {
			return nil, fmt.Errorf("%q is not api, worker or api,worker", text)
		}
		if !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return roles, nil
}

// has reports whether a process with the options has the role.
func (o Options) has(role Role) bool { return slices.Contains(o.Roles, role) }

// checkRoles names what is wrong with the roles of options whose defaults are filled in.
func (o Options) checkRoles() error {
	for _, role := range o.Roles {
		if role != RoleAPI && role != RoleWorker {
			return fmt.Errorf("roles: %q is none of api and worker", role)
		}
	}
	if kind, _, _ := strings.Cut(o.Store, ":"); kind == "sqlite" && !(o.has(RoleAPI) && o.has(RoleWorker)) {
		return fmt.Errorf("roles: a sqlite store has one process, which is both api and worker, not %s alone", o.Roles[0])
	}
	return nil
}
