package cli

import "github.com/alecthomas/kong"

// Groups are the headings of the commands, in their order.
var Groups = []kong.Group{
	{Key: "jobs", Title: "Jobs:"},
	{Key: "settings", Title: "Topics, lanes and schedules:"},
	{Key: "access", Title: "Access:"},
	{Key: "server", Title: "Observe a server:"},
	{Key: "tools", Title: "Without a server:"},
	{Key: "output", Title: "Server and output:"},
}

// Commands are the commands of this package.
type Commands struct {
	// Send a request, now or later.
	//
	//	ringback send https://shop.example/hooks -d '{"order": 4711}' --wait
	Send sendCommand `cmd:"" group:"jobs"`
	// Say what happened to a job, what it waits for, and what happens next.
	//
	//	ringback explain close-4711
	Explain explainCommand `cmd:"" group:"jobs"`
	// Wait until a job has ended. Exits 0 if it was delivered.
	//
	//	ringback wait close-4711 --timeout 10m
	Wait waitCommand `cmd:"" group:"jobs"`
	// Show attempts and changes as they happen, in all processes.
	//
	//	ringback tail --topic order.close --failed
	Tail tailCommand `cmd:"" group:"jobs" call:"GET /v1/stream"`
	// Pass jobs on to a server on this machine.
	//
	//	ringback forward --topic order.close --to http://localhost:3000/hooks
	Forward forwardCommand `cmd:"" group:"jobs"`
	// Register, read, change and cancel jobs.
	Job jobCommand `cmd:"" group:"jobs"`
	// List, revive and remove dead jobs.
	Dead deadCommand `cmd:"" group:"jobs"`
	// Change many jobs in the background.
	Work workCommand `cmd:"" group:"jobs"`
	// Send events to the lanes that subscribe to them.
	Event eventCommand `cmd:"" group:"jobs"`

	// Read and change the policies of topics.
	Topic topicCommand `cmd:"" group:"settings"`
	// Read and change the settings of lanes.
	Lane laneCommand `cmd:"" group:"settings"`
	// Register jobs at recurring times.
	Schedule scheduleCommand `cmd:"" group:"settings"`

	// Make topics, lanes and schedules be as files say.
	//
	//	ringback apply -f shop.yaml --dry-run
	Apply applyCommand `cmd:"" group:"settings"`
	// Compare files with topics, lanes and schedules. Exits 1 if they differ.
	//
	//	ringback diff -f shop.yaml
	Diff diffCommand `cmd:"" group:"settings"`
	// Print topics, lanes and schedules as a file for apply.
	//
	//	ringback dump --managed-by shop
	Dump dumpCommand `cmd:"" group:"settings"`

	// Create and revoke tokens.
	Token tokenCommand `cmd:"" group:"access"`
	// Create namespaces, and set their quotas.
	Namespaces namespaceCommand `cmd:"" name:"namespace" group:"access"`
	// Show whose the token is, and what it may do.
	//
	//	ringback whoami
	Whoami simple `cmd:"" group:"access" call:"GET /v1/whoami"`
	// Give names to servers, and choose one.
	ContextNames contextCommand `cmd:"" name:"context" group:"access"`

	// Count jobs by topic, or those of a topic by lane.
	//
	//	ringback stats --watch
	Stats statsCommand `cmd:"" group:"server"`
	// Check a server for monitoring. Exits 0 (OK), 1 (WARNING), 2 (CRITICAL) or 3 (UNKNOWN).
	//
	//	ringback check --oldest-due 1m,10m --dead 1,100
	Check checkCommand `cmd:"" group:"server"`
	// Make any request of the API.
	//
	//	ringback api GET /v1/version --jq .version
	API apiCommand `cmd:"" name:"api" group:"server"`

	// Show when the attempts of a job are made if all fail.
	//
	//	ringback simulate --ladder 15s,3m,10m --jitter 0.1
	Simulate simulateCommand `cmd:"" group:"tools"`
	// Sign requests as Ringback does, and verify signatures.
	Signature signatureCommand `cmd:"" group:"tools"`
	// Print the script that completes commands in a shell.
	//
	//	ringback completion bash
	Completion completionCommand `cmd:"" group:"tools"`
	Complete   completeCommand   `cmd:"" name:"__complete" group:"tools" hidden:""`
}

// simple is a command without arguments.
type simple struct{ call }

type jobCommand struct {
	// Register a job, or many from a file.
	//
	//	ringback job add --topic order.close --url https://shop.example/hooks -d '{"order": 4711}' --delay 30m
	Add addCommand `cmd:""`
	// Show a job with its newest attempts.
	//
	//	ringback job get close-4711
	Get plainCommand[jobID] `cmd:"" call:"GET /v1/jobs/{id}"`
	// List jobs.
	//
	//	ringback job list --topic order.close --state scheduled,ready
	List listJobs `cmd:"" call:"GET /v1/jobs" show:"jobs"`
	// Change a job that is scheduled or ready.
	//
	//	ringback job edit close-4711 --delay 5m --retries 3
	//
	// Done: {id} is changed: revision {revision}
	Edit editJob `cmd:"" call:"PATCH /v1/jobs/{id}"`
	// Cancel a job.
	//
	//	ringback job cancel close-4711
	//
	// Done: {id} is {state}
	// Running: {id} is running: it is cancelled after this attempt, unless that delivers it
	Cancel changeCommand[jobID] `cmd:"" call:"DELETE /v1/jobs/{id}"`
	// Make a scheduled job due now.
	//
	//	ringback job run close-4711
	//
	// Done: {id} is due now
	Run changeCommand[jobID] `cmd:"" call:"POST /v1/jobs/{id}/run"`
	// Send a job again that was delivered, dead or cancelled.
	//
	//	ringback job revive close-4711 --delay 1m
	//
	// Done: {id} is {state} again
	Revive reviveJob `cmd:"" call:"POST /v1/jobs/{id}/revive"`
}

type listJobs struct {
	// scheduled, ready, running, delivered, dead, cancelled; several separated by commas.
	State []string `placeholder:"STATE"`
	filter
	// Order of the times. Default: newest.
	Order string `placeholder:"newest|oldest"`
	page
	call
}

type editJob struct {
	jobID
	bodyFlag
	editFlags
	unsetFlag
	conditional
	call
}

type reviveJob struct {
	jobID
	// Time until the first attempt.
	Delay string `placeholder:"DURATION"`
	// New expiry, from now.
	ExpiresIn string `placeholder:"DURATION"`
	// New URL.
	URL string `name:"url" placeholder:"URL"`
	// Header of the request; replaces all headers of the job. Repeatable.
	Header []string `short:"H" sep:"none" in:"headers" field:"headers" placeholder:"NAME: VALUE"`
	conditional
	call
}

// bodyFlag is the body of a job.
type bodyFlag struct {
	// Body: JSON is sent byte for byte, anything else as text. @FILE is the content of a file, @- the standard input.
	Data string `short:"d" in:"data" field:"body" placeholder:"TEXT"`
}

// filter selects jobs.
type filter struct {
	// Jobs of this topic.
	Topic string `placeholder:"TOPIC"`
	// Jobs of this lane.
	Lane string `placeholder:"LANE"`
	// Jobs with this label. Repeatable: a job must have all of them.
	Label []string `sep:"none" placeholder:"NAME:VALUE"`
	// Jobs that ended for this reason: exhausted, expired, max_age, gave_up, nonretryable, blocked, invalid.
	Reason string `placeholder:"REASON"`
	// Jobs whose last answer had this status.
	Status *int `placeholder:"STATUS"`
	// Jobs whose last attempt got no complete answer for this error: a class such as timeout_dial, or any.
	ErrorClass string `placeholder:"CLASS"`
	// Jobs whose ids begin with this.
	IDPrefix string `name:"id-prefix" placeholder:"TEXT"`
	// all, registered, callback, backlog, work or schedule. Default: registered.
	Kind string `placeholder:"KIND"`
	// Registered at this time or later: a time, or 2h for two hours ago.
	CreatedAfter moment `placeholder:"TIME"`
	// Registered before this time.
	CreatedBefore moment `placeholder:"TIME"`
	// Due at this time or later: a time, 2h for two hours ago, or +2h for in two hours.
	DueAfter moment `placeholder:"TIME"`
	// Due before this time: +1h for what is due within the next hour; 1h is an hour ago.
	DueBefore moment `placeholder:"TIME"`
	// Ended at this time or later.
	EndedAfter moment `placeholder:"TIME"`
	// Ended before this time.
	EndedBefore moment `placeholder:"TIME"`
}

type deadCommand struct {
	// List dead jobs, the newest first.
	//
	//	ringback dead list --topic order.close --reason exhausted
	List listDead `cmd:"" call:"GET /v1/dead" show:"dead"`
	// Count dead jobs by topic, lane, reason, status or error class.
	//
	//	ringback dead groups --by lane,error_class --ended-after 1d
	Groups groupDead `cmd:"" call:"GET /v1/dead/groups" show:"groups"`
	// Send dead jobs again. Counts them and asks first.
	//
	//	ringback dead revive --topic order.close --status 503 --rate 50/s
	Revive reviveDead `cmd:"" call:"POST /v1/dead/revive"`
	// Remove dead jobs for good. Counts them and asks first.
	//
	//	ringback dead purge --topic order.close --ended-before 30d
	Purge purgeDead `cmd:"" call:"POST /v1/dead/purge"`
}

type listDead struct {
	filter
	// Order of their ends. Default: newest.
	Order string `placeholder:"newest|oldest"`
	page
	call
}

type groupDead struct {
	// One or several of topic, lane, reason, status, error_class, separated by commas (default topic,lane,reason).
	By string `default:"topic,lane,reason" placeholder:"FIELDS"`
	filter
	call
}

// selection selects the jobs of bulk work.
type selection struct {
	// Ids of the jobs, instead of a filter.
	IDs []string `arg:"" optional:"" name:"id" field:"ids"`
	// All, instead of a filter.
	All bool
	filter
}

// pace are the flags of how fast jobs are sent again.
type pace struct {
	// Jobs that become due in any such time, as 50/s. Default: all at once.
	Rate string `placeholder:"N/DURATION"`
	// The same for each lane.
	LaneRate string `placeholder:"N/DURATION"`
}

type reviveDead struct {
	selection
	pace
	// Time until the first attempt of all. Requires a rate.
	Delay string `placeholder:"DURATION"`
	// New expiry, from when each job is due again.
	ExpiresIn string `placeholder:"DURATION"`
	// URL that replaces theirs.
	TargetURL string `name:"url" placeholder:"URL"`
	// Header that replaces all headers of each job. Repeatable.
	Header []string `short:"H" sep:"none" in:"headers" field:"headers" placeholder:"NAME: VALUE"`
	bulk
}

type purgeDead struct {
	selection
	bulk
}

type workCommand struct {
	// Revive, purge, cancel, run or edit many jobs. Counts them and asks first. Events: ringback event replay.
	//
	//	ringback work start cancel --topic order.close --label customer:4711
	Start startWork `cmd:"" call:"POST /v1/work"`
	// List work, running work first.
	//
	//	ringback work list
	List listAll `cmd:"" call:"GET /v1/work" show:"work"`
	// Show work with its counts.
	//
	//	ringback work get 0b8kq2x5
	Get plainCommand[workID] `cmd:"" call:"GET /v1/work/{id}"`
	// Show the progress of work until it has ended.
	//
	//	ringback work wait 0b8kq2x5
	Wait waitWork `cmd:""`
	// Stop work after the step in progress. What was done stays.
	//
	//	ringback work stop 0b8kq2x5
	//
	// Done: {id} is {state}: {done} done, {failed} failed, {skipped} skipped
	Stop plainCommand[workID] `cmd:"" call:"POST /v1/work/{id}/stop"`
}

type eventCommand struct {
	// Send an event to the lanes of a topic that subscribe to its type.
	//
	//	ringback event send order.paid --topic merchants -d '{"order": 4711}'
	//
	// Done: {id} has {jobs} jobs
	Send sendEvent `cmd:"" call:"POST /v1/events"`
	// List events, the newest first.
	//
	//	ringback event list --topic merchants --type order.paid
	List listEvents `cmd:"" call:"GET /v1/events" show:"sent"`
	// Show an event, and what became of its jobs.
	//
	//	ringback event get order-4711-paid
	Get plainCommand[eventID] `cmd:"" call:"GET /v1/events/{id}"`
	// Send events again, to the lanes that subscribe now. Counts them and asks first.
	//
	//	ringback event replay --topic merchants --lane shop-2 --created-after 24h --state missed
	Replay replayEvents `cmd:"" call:"POST /v1/work"`
}

type replayEvents struct {
	// Ids of the events, instead of a filter.
	IDs []string `arg:"" optional:"" name:"id" field:"ids"`
	// All, instead of a filter.
	All bool
	eventFilter
	// To this lane only.
	Lane string `placeholder:"LANE"`
	// To lanes whose job of the event is dead, delivered or cancelled, or that missed it: had none. Default: to all.
	State []string `placeholder:"STATE"`
	pace
	bulk
}

type sendEvent struct {
	// What happened, such as order.paid.
	Type string `arg:""`
	eventFlags
	bodyFlag
	// Show which lanes would get it, and send nothing.
	DryRun bool `in:"query"`
	// Wait until its jobs have ended, up to 100, for at most this time of up to 60s.
	Wait string `in:"query" placeholder:"DURATION"`
	call
}

type listEvents struct {
	eventFilter
	// Order of the times. Default: newest.
	Order string `placeholder:"newest|oldest"`
	page
	call
}

// eventFilter are the flags that select events.
type eventFilter struct {
	// Events of this topic.
	Topic string `placeholder:"TOPIC"`
	// Events of this type.
	Type string `placeholder:"TYPE"`
	// Events with this label. Repeatable: an event must have all of them.
	Label []string `sep:"none" placeholder:"NAME:VALUE"`
	// Sent at this time or later: a time, or 2h for two hours ago.
	CreatedAfter moment `placeholder:"TIME"`
	// Sent before this time.
	CreatedBefore moment `placeholder:"TIME"`
}

type listAll struct {
	page
	call
}

type startWork struct {
	// revive, purge, cancel, run or edit.
	Action string `arg:"" enum:"revive,purge,cancel,run,edit"`
	selection
	// States of the jobs, of those that the action can select.
	State []string `placeholder:"STATE"`
	pace
	// Change of edit and revive: url, delay, expires_in, retries, ladder, timeout, … Repeatable.
	Set []string `sep:"none" in:"none" placeholder:"FIELD=VALUE"`
	bulk
}
