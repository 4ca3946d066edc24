package cli

import "github.com/alecthomas/kong"

// Groups are the headings of the commands, in their order.
var Groups = []kong.Group{
	{Key: "jobs", Title: "Jobs:"},
	{Key: "settings", Title: "Topics, lanes and schedules:"},
	{Key: "access", Title: "Access:"},
	{Key: "server", Title: "Observe a server:"},
	{Key: "tools", Title: "Without a server:"},
	{Key: "connection", Title: "Server and output:"},
}

// Commands are the commands of this package.
type Commands struct {
	Send    sendCommand    `cmd:"" group:"jobs" help:"Send a request, now or later." example:"ringback send https://shop.example/hooks -d '{\"order\": 4711}' --wait"`
	Explain explainCommand `cmd:"" group:"jobs" help:"Say what happened to a job, what it waits for, and what happens next." example:"ringback explain close-4711"`
	Wait    waitCommand    `cmd:"" group:"jobs" help:"Wait until a job has ended. Exits 0 if it was delivered." example:"ringback wait close-4711 --timeout 10m"`
	Tail    tailCommand    `cmd:"" group:"jobs" call:"GET /v1/stream" help:"Show attempts and changes as they happen, in all processes." example:"ringback tail --topic order.close --failed"`
	Forward forwardCommand `cmd:"" group:"jobs" help:"Pass jobs on to a server on this machine." example:"ringback forward --topic order.close --to http://localhost:3000/hooks"`
	Job     jobCommand     `cmd:"" group:"jobs" help:"Register, read, change and cancel jobs."`
	Dead    deadCommand    `cmd:"" group:"jobs" help:"List, revive and remove dead jobs."`
	Work    workCommand    `cmd:"" group:"jobs" help:"Change many jobs in the background."`

	Topic    topicCommand    `cmd:"" group:"settings" help:"Read and change the policies of topics."`
	Lane     laneCommand     `cmd:"" group:"settings" help:"Read and change the settings of lanes."`
	Schedule scheduleCommand `cmd:"" group:"settings" help:"Register jobs at recurring times."`

	Apply applyCommand `cmd:"" group:"settings" help:"Make topics, lanes and schedules be as files say." example:"ringback apply -f shop.yaml --dry-run"`
	Diff  diffCommand  `cmd:"" group:"settings" help:"Compare files with topics, lanes and schedules. Exits 1 if they differ." example:"ringback diff -f shop.yaml"`
	Dump  dumpCommand  `cmd:"" group:"settings" help:"Print topics, lanes and schedules as a file for apply." example:"ringback dump --managed-by shop"`

	Token        tokenCommand     `cmd:"" group:"access" help:"Create and revoke tokens."`
	Namespaces   namespaceCommand `cmd:"" name:"namespace" group:"access" help:"Create namespaces, and set their quotas."`
	Whoami       simple           `cmd:"" group:"access" call:"GET /v1/whoami" help:"Show whose the token is, and what it may do." example:"ringback whoami"`
	ContextNames contextCommand   `cmd:"" name:"context" group:"access" help:"Give names to servers, and choose one."`

	Stats statsCommand `cmd:"" group:"server" help:"Count jobs by topic, or those of a topic by lane." example:"ringback stats --watch"`
	Check checkCommand `cmd:"" group:"server" help:"Check a server for monitoring. Exits 0 (OK), 1 (WARNING), 2 (CRITICAL) or 3 (UNKNOWN)." example:"ringback check --oldest-due 1m,10m --dead 1,100"`
	API   apiCommand   `cmd:"" name:"api" group:"server" help:"Make any request of the API." example:"ringback api GET /v1/version --jq .version"`

	Simulate   simulateCommand   `cmd:"" group:"tools" help:"Show when the attempts of a job are made if all fail." example:"ringback simulate --ladder 15s,3m,10m --jitter 0.1"`
	Signature  signatureCommand  `cmd:"" group:"tools" help:"Sign requests as Ringback does, and verify signatures."`
	Completion completionCommand `cmd:"" group:"tools" help:"Print the script that completes commands in a shell." example:"ringback completion bash"`
	Complete   completeCommand   `cmd:"" name:"__complete" group:"tools" hidden:""`
}

// simple is a command without arguments.
type simple struct{ call }

type jobCommand struct {
	Add    addCommand `cmd:"" help:"Register a job, or many from a file." example:"ringback job add --topic order.close --url https://shop.example/hooks -d '{\"order\": 4711}' --delay 30m"`
	Get    oneJob     `cmd:"" call:"GET /v1/jobs/{id}" help:"Show a job with its newest attempts." example:"ringback job get close-4711"`
	List   listJobs   `cmd:"" call:"GET /v1/jobs" show:"jobs" help:"List jobs." example:"ringback job list --topic order.close --state scheduled,ready"`
	Edit   editJob    `cmd:"" call:"PATCH /v1/jobs/{id}" done:"{id} is changed: revision {revision}" help:"Change a job that is scheduled or ready." example:"ringback job edit close-4711 --delay 5m --retries 3"`
	Cancel changeJob  `cmd:"" call:"DELETE /v1/jobs/{id}" done:"{id} is {state}" running:"{id} is running: it is cancelled after this attempt, unless that delivers it" help:"Cancel a job." example:"ringback job cancel close-4711"`
	Run    changeJob  `cmd:"" call:"POST /v1/jobs/{id}/run" done:"{id} is due now" help:"Make a scheduled job due now." example:"ringback job run close-4711"`
	Revive reviveJob  `cmd:"" call:"POST /v1/jobs/{id}/revive" done:"{id} is {state} again" help:"Send a job again that was delivered, dead or cancelled." example:"ringback job revive close-4711 --delay 1m"`
}

type oneJob struct {
	ID string `arg:"" help:"Id of the job."`
	call
}

type changeJob struct {
	ID string `arg:"" help:"Id of the job."`
	conditional
	call
}

type listJobs struct {
	State []string `placeholder:"STATE" help:"scheduled, ready, running, delivered, dead, cancelled; several separated by commas."`
	filter
	Order string `placeholder:"newest|oldest" help:"Order of the times. Default: newest."`
	page
	call
}

type editJob struct {
	ID string `arg:"" help:"Id of the job."`
	jobFields
	Unset []string `in:"unset" placeholder:"FIELD" help:"Fields to remove: headers, labels, ladder, timeout, expires-at."`
	conditional
	call
}

type reviveJob struct {
	ID        string   `arg:"" help:"Id of the job."`
	Delay     string   `placeholder:"DURATION" help:"Time until the first attempt."`
	ExpiresIn string   `placeholder:"DURATION" help:"New expiry, from now."`
	URL       string   `name:"url" placeholder:"URL" help:"New URL."`
	Header    []string `short:"H" sep:"none" in:"headers" field:"headers" placeholder:"NAME: VALUE" help:"Header of the request; replaces all headers of the job. Repeatable."`
	conditional
	call
}

// jobFields are the fields of a job that can be changed.
type jobFields struct {
	Header      []string          `short:"H" sep:"none" in:"headers" field:"headers" placeholder:"NAME: VALUE" help:"Header of the request. Repeatable."`
	Data        string            `short:"d" in:"data" field:"body" placeholder:"TEXT" help:"Body: JSON is sent byte for byte, anything else as text. @FILE is the content of a file, @- the standard input."`
	ContentType string            `placeholder:"TYPE" help:"Type of the body. Default: application/json, text/plain or application/octet-stream."`
	Delay       string            `placeholder:"DURATION" help:"Time until the first attempt: 90s, 1h30m, 2d."`
	RunAt       string            `placeholder:"TIME" help:"Time of the first attempt: 2030-01-31T08:00:00Z."`
	Retries     *int              `placeholder:"N" help:"Requests after the first one. Default: the length of the ladder."`
	Ladder      []string          `placeholder:"DURATION,…" help:"Waits after the first, second, … failed attempt: 15s,3m,10m."`
	Timeout     string            `placeholder:"DURATION" help:"Longest duration of an attempt."`
	ExpiresIn   string            `placeholder:"DURATION" help:"No attempt is made after this time from now."`
	ExpiresAt   string            `placeholder:"TIME" help:"No attempt is made after this time."`
	Label       map[string]string `mapsep:"none" field:"labels" placeholder:"NAME=VALUE" help:"Label. Repeatable."`
	TargetURL   string            `name:"url" placeholder:"URL" help:"URL to send the request to. Default: that of the lane or the topic."`
}

// filter selects jobs.
type filter struct {
	Topic         string   `placeholder:"TOPIC" help:"Jobs of this topic."`
	Lane          string   `placeholder:"LANE" help:"Jobs of this lane."`
	Label         []string `sep:"none" placeholder:"NAME:VALUE" help:"Jobs with this label. Repeatable: a job must have all of them."`
	Reason        string   `placeholder:"REASON" help:"Jobs that ended for this reason: exhausted, expired, max_age, gave_up, nonretryable, blocked, invalid."`
	Status        *int     `placeholder:"STATUS" help:"Jobs whose last answer had this status."`
	IDPrefix      string   `name:"id-prefix" placeholder:"TEXT" help:"Jobs whose ids begin with this."`
	Kind          string   `placeholder:"KIND" help:"all, registered, callback, backlog, work or schedule. Default: registered."`
	CreatedAfter  moment   `placeholder:"TIME" help:"Registered at this time or later: a time, or 2h for two hours ago."`
	CreatedBefore moment   `placeholder:"TIME" help:"Registered before this time."`
	DueAfter      moment   `placeholder:"TIME" help:"Due at this time or later: a time, 2h for two hours ago, or +2h for in two hours."`
	DueBefore     moment   `placeholder:"TIME" help:"Due before this time: +1h for what is due within the next hour; 1h is an hour ago."`
	EndedAfter    moment   `placeholder:"TIME" help:"Ended at this time or later."`
	EndedBefore   moment   `placeholder:"TIME" help:"Ended before this time."`
}

type deadCommand struct {
	List   listDead   `cmd:"" call:"GET /v1/dead" show:"dead" help:"List dead jobs, the newest first." example:"ringback dead list --topic order.close --reason exhausted"`
	Groups groupDead  `cmd:"" call:"GET /v1/dead/groups" show:"groups" help:"Count dead jobs by topic, lane, reason or status." example:"ringback dead groups --by lane,status --ended-after 1d"`
	Revive reviveDead `cmd:"" call:"POST /v1/dead/revive" help:"Send dead jobs again. Counts them and asks first." example:"ringback dead revive --topic order.close --status 503 --rate 50/s"`
	Purge  purgeDead  `cmd:"" call:"POST /v1/dead/purge" help:"Remove dead jobs for good. Counts them and asks first." example:"ringback dead purge --topic order.close --ended-before 30d"`
}

type listDead struct {
	filter
	Order string `placeholder:"newest|oldest" help:"Order of their ends. Default: newest."`
	page
	call
}

type groupDead struct {
	By string `default:"topic,lane,reason" placeholder:"FIELDS" help:"One or several of topic, lane, reason and status, separated by commas (default topic,lane,reason)."`
	filter
	call
}

// selection selects the jobs of bulk work.
type selection struct {
	IDs []string `arg:"" optional:"" name:"id" field:"ids" help:"Ids of the jobs, instead of a filter."`
	All bool     `help:"All, instead of a filter."`
	filter
}

// pace are the flags of how fast jobs are sent again.
type pace struct {
	Rate     string `placeholder:"N/DURATION" help:"Jobs that become due in any such time, as 50/s. Default: all at once."`
	LaneRate string `placeholder:"N/DURATION" help:"The same for each lane."`
}

type reviveDead struct {
	selection
	pace
	Delay     string   `placeholder:"DURATION" help:"Time until the first attempt of all. Requires a rate."`
	ExpiresIn string   `placeholder:"DURATION" help:"New expiry, from when each job is due again."`
	TargetURL string   `name:"url" placeholder:"URL" help:"URL that replaces theirs."`
	Header    []string `short:"H" sep:"none" in:"headers" field:"headers" placeholder:"NAME: VALUE" help:"Header that replaces all headers of each job. Repeatable."`
	bulk
}

type purgeDead struct {
	selection
	bulk
}

type workCommand struct {
	Start startWork `cmd:"" call:"POST /v1/work" help:"Revive, purge, cancel, run or edit many jobs. Counts them and asks first." example:"ringback work start cancel --topic order.close --label customer:4711"`
	List  listAll   `cmd:"" call:"GET /v1/work" show:"work" help:"List work, running work first." example:"ringback work list"`
	Get   oneWork   `cmd:"" call:"GET /v1/work/{id}" help:"Show work with its counts." example:"ringback work get 0b8kq2x5"`
	Wait  waitWork  `cmd:"" help:"Show the progress of work until it has ended." example:"ringback work wait 0b8kq2x5"`
	Stop  oneWork   `cmd:"" call:"POST /v1/work/{id}/stop" done:"{id} is {state}: {done} done, {failed} failed, {skipped} skipped" help:"Stop work after the step in progress. What was done stays." example:"ringback work stop 0b8kq2x5"`
}

type listAll struct {
	page
	call
}

type oneWork struct {
	ID string `arg:"" help:"Id of the work."`
	call
}

type startWork struct {
	Action string `arg:"" enum:"revive,purge,cancel,run,edit" help:"revive, purge, cancel, run or edit."`
	selection
	State []string `placeholder:"STATE" help:"States of the jobs, of those that the action can select."`
	pace
	Set []string `sep:"none" in:"none" placeholder:"FIELD=VALUE" help:"Change of edit and revive: url, delay, expires_in, retries, ladder, timeout, … Repeatable."`
	bulk
}
