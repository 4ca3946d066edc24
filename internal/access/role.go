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

// The actions. A route names one for each of its methods.
const (
	// Open needs no token: health, metrics, the contract.
	Open Action = "open"
	// ReadService reads the version, or who the token belongs to.
	ReadService Action = "service.read"

	RegisterJob Action = "job.register"
	ReadJob     Action = "job.read"
	ListJobs    Action = "job.list"
	EditJob     Action = "job.edit"
	RunJob      Action = "job.run"
	ReviveJob   Action = "job.revive"
	CancelJob   Action = "job.cancel"

	// LeaseJobs leases jobs of a pulled topic, SettleLeases reports what became of them.
	LeaseJobs    Action = "job.lease"
	SettleLeases Action = "lease.settle"

	// ReviveDead, PurgeDead and the actions of work change many jobs.
	ReviveDead Action = "dead.revive"
	PurgeDead  Action = "dead.purge"
	ReadWork   Action = "work.read"
	StartWork  Action = "work.start"
	StopWork   Action = "work.stop"

	ReadStats Action = "stats.read"
	// WatchEvents watches attempts and changes live.
	WatchEvents Action = "stream.read"

	ReadTopic   Action = "topic.read"
	ChangeTopic Action = "topic.change"
	DeleteTopic Action = "topic.delete"
	PauseTopic  Action = "topic.pause"
	ResumeTopic Action = "topic.resume"

	ReadLane   Action = "lane.read"
	ChangeLane Action = "lane.change"
	DeleteLane Action = "lane.delete"
	PauseLane  Action = "lane.pause"
	ResumeLane Action = "lane.resume"

	ReadSchedule     Action = "schedule.read"
	ChangeSchedule   Action = "schedule.change"
	DeleteSchedule   Action = "schedule.delete"
	RunSchedule      Action = "schedule.run"
	PauseSchedule    Action = "schedule.pause"
	ResumeSchedule   Action = "schedule.resume"
	BackfillSchedule Action = "schedule.backfill"

	// ReadKeys reads public keys, ReadSecrets the ids of secrets.
	ReadKeys     Action = "key.read"
	ReadSecrets  Action = "secret.read"
	AddSecret    Action = "secret.add"
	RemoveSecret Action = "secret.remove"

	ReadTokens  Action = "token.read"
	CreateToken Action = "token.create"
	RevokeToken Action = "token.revoke"

	// Only the root may manage namespaces.
	ReadNamespaces  Action = "namespace.read"
	PutNamespace    Action = "namespace.put"
	DeleteNamespace Action = "namespace.delete"
)

// rules are the roles that allow each action.
var rules = map[Action][]Role{
	Open:        {Read, Publish, Operate, Admin},
	ReadService: {Read, Publish, Operate, Admin},

	RegisterJob: {Publish, Admin},
	ReadJob:     {Read, Publish, Operate, Admin},
	CancelJob:   {Publish, Operate, Admin},
	ListJobs:    {Read, Operate, Admin},
	EditJob:     {Operate, Admin},
	RunJob:      {Operate, Admin},
	ReviveJob:   {Operate, Admin},

	LeaseJobs:    {Operate, Admin},
	SettleLeases: {Operate, Admin},

	ReviveDead: {Operate, Admin},
	PurgeDead:  {Operate, Admin},
	ReadWork:   {Read, Operate, Admin},
	StartWork:  {Operate, Admin},
	StopWork:   {Operate, Admin},

	ReadStats:   {Read, Operate, Admin},
	WatchEvents: {Read, Operate, Admin},

	ReadTopic:   {Read, Operate, Admin},
	ChangeTopic: {Admin},
	DeleteTopic: {Admin},
	PauseTopic:  {Operate, Admin},
	ResumeTopic: {Operate, Admin},

	ReadLane:   {Read, Operate, Admin},
	ChangeLane: {Admin},
	DeleteLane: {Admin},
	PauseLane:  {Operate, Admin},
	ResumeLane: {Operate, Admin},

	ReadSchedule:     {Read, Operate, Admin},
	ChangeSchedule:   {Admin},
	DeleteSchedule:   {Admin},
	RunSchedule:      {Operate, Admin},
	PauseSchedule:    {Operate, Admin},
	ResumeSchedule:   {Operate, Admin},
	BackfillSchedule: {Operate, Admin},

	ReadKeys:     {Read, Operate, Admin},
	ReadSecrets:  {Admin},
	AddSecret:    {Admin},
	RemoveSecret: {Admin},

	ReadTokens:  {Admin},
	CreateToken: {Admin},
	RevokeToken: {Admin},

	ReadNamespaces:  {Admin},
	PutNamespace:    {Admin},
	DeleteNamespace: {Admin},
}

// RolesFor returns the roles that allow an action, from the least; none for an unknown action. The slice must not be
// changed.
func RolesFor(action Action) []Role { return rules[action] }

// Allows reports whether the role allows an action.
func (r Role) Allows(action Action) bool { return slices.Contains(rules[action], r) }

// NeedsRoot reports whether only the root may do an action, because it concerns all namespaces.
func (a Action) NeedsRoot() bool {
	return a == ReadNamespaces || a == PutNamespace || a == DeleteNamespace
}
