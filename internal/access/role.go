package access

import "slices"

// Role is what a token is for.
type Role string

// The roles.
const (
	Read    Role = "read"    // reads everything but tokens and namespaces
	Publish Role = "publish" // registers jobs, and reads or cancels a job by its id
	Operate Role = "operate" // reads, and changes jobs and pauses
	Admin   Role = "admin"   // everything
)

// Roles returns all roles.
func Roles() []Role { return []Role{Read, Publish, Operate, Admin} }

// IsRole reports whether a text is a role.
func IsRole(text string) bool { return slices.Contains(Roles(), Role(text)) }

// Action is a kind of thing that a request does. Its text is the action in audit lines.
type Action string

// rules are the roles that allow each action.
var rules = make(map[Action][]Role)

// allow returns an action that some roles allow.
func allow(action Action, roles []Role) Action {
	rules[action] = roles
	return action
}

// Sets of roles, each from the least.
var (
	anyRole    = []Role{Read, Publish, Operate, Admin}
	users      = []Role{Publish, Operate, Admin}
	publishers = []Role{Publish, Admin}
	readers    = []Role{Read, Operate, Admin}
	operators  = []Role{Operate, Admin}
	admins     = []Role{Admin}
)

// The actions. A route names one for each of its methods.
var (
	// Open needs no token: health, metrics, the contract.
	Open = allow("open", anyRole)
	// ReadService reads the version, or who the token belongs to.
	ReadService = allow("service.read", anyRole)

	RegisterJob = allow("job.register", publishers)
	ReadJob     = allow("job.read", anyRole)
	ListJobs    = allow("job.list", readers)
	EditJob     = allow("job.edit", operators)
	RunJob      = allow("job.run", operators)
	ReviveJob   = allow("job.revive", operators)
	CancelJob   = allow("job.cancel", users)

	// LeaseJobs leases jobs of a pulled topic, SettleLeases reports what became of them.
	LeaseJobs    = allow("job.lease", operators)
	SettleLeases = allow("lease.settle", operators)

	// ReviveDead, PurgeDead and the actions of work change many jobs.
	ReviveDead = allow("dead.revive", operators)
	PurgeDead  = allow("dead.purge", operators)
	ReadWork   = allow("work.read", readers)
	StartWork  = allow("work.start", operators)
	StopWork   = allow("work.stop", operators)

	SendEvent  = allow("event.send", publishers)
	TestLane   = allow("lane.test", publishers)
	ReadEvents = allow("event.read", readers)

	ReadStats = allow("stats.read", readers)
	// WatchUpdates watches attempts and changes live.
	WatchUpdates = allow("stream.read", readers)

	ReadTopic   = allow("topic.read", readers)
	ChangeTopic = allow("topic.change", admins)
	DeleteTopic = allow("topic.delete", admins)
	PauseTopic  = allow("topic.pause", operators)
	ResumeTopic = allow("topic.resume", operators)

	ReadLane   = allow("lane.read", readers)
	ChangeLane = allow("lane.change", admins)
	DeleteLane = allow("lane.delete", admins)
	PauseLane  = allow("lane.pause", operators)
	ResumeLane = allow("lane.resume", operators)

	ReadSchedule     = allow("schedule.read", readers)
	ChangeSchedule   = allow("schedule.change", admins)
	DeleteSchedule   = allow("schedule.delete", admins)
	RunSchedule      = allow("schedule.run", operators)
	PauseSchedule    = allow("schedule.pause", operators)
	ResumeSchedule   = allow("schedule.resume", operators)
	BackfillSchedule = allow("schedule.backfill", operators)

	// ReadKeys reads public keys, ReadSecrets the ids of secrets.
	ReadKeys     = allow("key.read", readers)
	ReadSecrets  = allow("secret.read", admins)
	AddSecret    = allow("secret.add", admins)
	RemoveSecret = allow("secret.remove", admins)

	ReadTokens  = allow("token.read", admins)
	CreateToken = allow("token.create", admins)
	RevokeToken = allow("token.revoke", admins)

	// Only the root may manage namespaces.
	ReadNamespaces  = allow("namespace.read", admins)
	PutNamespace    = allow("namespace.put", admins)
	DeleteNamespace = allow("namespace.delete", admins)
)

// RolesFor returns the roles that allow an action, from the least; none for an unknown action. The slice must not be
// changed.
func RolesFor(action Action) []Role { return rules[action] }

// Allows reports whether the role allows an action.
func (r Role) Allows(action Action) bool { return slices.Contains(rules[action], r) }

// NeedsRoot reports whether only the root may do an action, because it concerns all namespaces.
func (a Action) NeedsRoot() bool {
	return a == ReadNamespaces || a == PutNamespace || a == DeleteNamespace
}
