package app

import (
	"fmt"
	"slices"
	"strings"
)

// Role is a part of the service. Processes on one Redis may have different roles.
type Role string

// The roles. A process with RoleAPI serves the API; one with RoleWorker carries and delivers. A process with RoleWorker
// alone serves only its health.
const (
	RoleAPI    Role = "api"
	RoleWorker Role = "worker"
)

// Roles are the roles of a process.
type Roles []Role

// UnmarshalText parses a comma-separated list such as "api,worker", in any order. Duplicates are dropped.
func (r *Roles) UnmarshalText(text []byte) error {
	var roles Roles
	for name := range strings.SplitSeq(string(text), ",") {
		role := Role(strings.TrimSpace(name))
		if role != RoleAPI && role != RoleWorker {
			return fmt.Errorf("%q is not api, worker or api,worker", text)
		}
		if !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	*r = roles
	return nil
}

// String returns the roles, separated by commas.
func (r Roles) String() string {
	var all []string
	for _, role := range r {
		all = append(all, string(role))
	}
	return strings.Join(all, ",")
}

// has reports whether the process has the role.
func (o Options) has(role Role) bool { return slices.Contains(o.Roles, role) }

// checkRoles validates the roles of options with defaults filled in.
func (o Options) checkRoles() error {
	for _, role := range o.Roles {
		if role != RoleAPI && role != RoleWorker {
			return fmt.Errorf("roles: %q is not api or worker", role)
		}
	}
	stores, _ := parseStores(o.Store)
	onFile := slices.ContainsFunc(stores, func(n namedStore) bool { return n.file != "" })
	if onFile && !(o.has(RoleAPI) && o.has(RoleWorker)) {
		return fmt.Errorf("roles: a sqlite store needs one process with both api and worker, not %s alone", o.Roles[0])
	}
	return nil
}
