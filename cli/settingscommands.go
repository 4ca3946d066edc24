package cli

// assigned are the settings that a command changes.
type assigned struct {
	Settings []string `arg:"" optional:"" name:"setting" in:"assignments" help:"NAME=VALUE, such as rate=100/s, breaker.failures=5 or rate=null. A value is JSON, else a text. The command get shows the names."`
	File     string   `short:"f" in:"file" placeholder:"FILE" help:"JSON file with settings, - for the standard input."`
}

type topicCommand struct {
	List   listAll      `cmd:"" call:"GET /v1/topics" show:"topics" help:"List topics." example:"ringback topic list -o wide"`
	Get    oneTopic     `cmd:"" call:"GET /v1/topics/{topic}" help:"Show the policy of a topic." example:"ringback topic get order.close"`
	Set    setTopic     `cmd:"" call:"PATCH /v1/topics/{topic}" create:"" done:"{topic} has revision {revision}" help:"Change settings of a topic, and create it if need be." example:"ringback topic set order.close ladder=15s,3m,10m rate=100/s"`
	Put    setTopic     `cmd:"" call:"PUT /v1/topics/{topic}" done:"{topic} has revision {revision}" help:"Replace the whole policy of a topic." example:"ringback topic put order.close -f policy.json"`
	Delete deleteTopic  `cmd:"" call:"DELETE /v1/topics/{topic}" managed:"" count:"/v1/topics/{}/stats" ask:"Delete topic {topic}, its policy, secrets and the settings of its lanes?" done:"{topic} is deleted" help:"Delete a topic: its policy, its secrets and the settings of its lanes." example:"ringback topic delete order.close"`
	Pause  pauseTopic   `cmd:"" call:"POST /v1/topics/{topic}/pause" done:"{topic} is paused: jobs are accepted, and wait" help:"Pause a topic. Jobs are still accepted." example:"ringback topic pause order.close --note 'deploying the shop'"`
	Resume changeTopic  `cmd:"" call:"POST /v1/topics/{topic}/resume" done:"{topic} is resumed" help:"Resume a topic." example:"ringback topic resume order.close"`
	Secret topicSecrets `cmd:"" help:"The secrets that sign a topic's requests."`
	Keys   oneTopicList `cmd:"" call:"GET /v1/topics/{topic}/keys" show:"keys" help:"List the public keys with which receivers verify ed25519 signatures." example:"ringback topic keys order.close"`
}

// topicName is the argument that names a topic.
type topicName struct {
	Topic string `arg:"" help:"Name of the topic."`
}

type oneTopic struct {
	topicName
	call
}

type oneTopicList struct {
	topicName
	page
	call
}

type changeTopic struct {
	topicName
	conditional
	call
}

type setTopic struct {
	topicName
	assigned
	conditional
	call
}

type deleteTopic struct {
	topicName
	Purge bool `in:"query" help:"Cancel its unfinished jobs and remove its dead jobs first."`
	confirmed
	conditional
	call
}

// pauseNote is the flag of pauses.
type pauseNote struct {
	Note string `placeholder:"TEXT" help:"Why, for those who find the pause."`
}

type pauseTopic struct {
	topicName
	pauseNote
	conditional
	call
}

// newSecret are the flags of new secrets.
type newSecret struct {
	Kind   string `placeholder:"hmac|ed25519" help:"hmac: a shared secret. ed25519: a key of which receivers get the public half. Default: hmac."`
	Secret string `in:"secret" field:"secret" placeholder:"@FILE" help:"File with the secret, or @- for the standard input. Default: the server makes one, and shows it once."`
}

type topicSecrets struct {
	Add    addTopicSecret    `cmd:"" call:"POST /v1/topics/{topic}/secrets" help:"Add a secret. It signs beside the others." example:"ringback topic secret add order.close"`
	List   oneTopicList      `cmd:"" call:"GET /v1/topics/{topic}/secrets" show:"secrets" help:"List secrets without their values." example:"ringback topic secret list order.close"`
	Remove removeTopicSecret `cmd:"" call:"DELETE /v1/topics/{topic}/secrets/{id}" ask:"Remove secret {id} of {topic}? Receivers that know only this one reject requests from then on." done:"secret {id} is removed" help:"Remove a secret." example:"ringback topic secret remove order.close 1f0a"`
}

type addTopicSecret struct {
	topicName
	newSecret
	conditional
	call
}

type removeTopicSecret struct {
	topicName
	ID string `arg:"" help:"Id of the secret."`
	confirmed
	conditional
	call
}

type laneCommand struct {
	List   oneTopicList `cmd:"" call:"GET /v1/topics/{topic}/lanes" show:"lanes" help:"List the lanes of a topic that have settings." example:"ringback lane list order.close"`
	Held   heldLanes    `cmd:"" call:"GET /v1/lanes/held" show:"held" help:"List the lanes that hold jobs back now, the worst first, and why." example:"ringback lane held -o wide"`
	Get    oneLane      `cmd:"" call:"GET /v1/topics/{topic}/lanes/{lane}" help:"Show the settings of a lane." example:"ringback lane get order.close shop.example:443"`
	Set    setLane      `cmd:"" call:"PATCH /v1/topics/{topic}/lanes/{lane}" done:"{lane} of {topic} has revision {revision}" help:"Change settings of a lane." example:"ringback lane set order.close shop.example:443 lane_rate=10/s"`
	Put    setLane      `cmd:"" call:"PUT /v1/topics/{topic}/lanes/{lane}" done:"{lane} of {topic} has revision {revision}" help:"Replace all settings of a lane." example:"ringback lane put order.close shop.example:443 -f lane.json"`
	Delete deleteLane   `cmd:"" call:"DELETE /v1/topics/{topic}/lanes/{lane}" managed:"" ask:"Remove the settings and secrets of lane {lane} of {topic}?" done:"{lane} of {topic} has the settings of its topic" help:"Remove the settings and secrets of a lane." example:"ringback lane delete order.close shop.example:443"`
	Pause  pauseLane    `cmd:"" call:"POST /v1/topics/{topic}/lanes/{lane}/pause" done:"{lane} of {topic} is paused: jobs are accepted, and wait" help:"Pause a lane. Jobs are still accepted." example:"ringback lane pause order.close shop.example:443"`
	Resume changeLane   `cmd:"" call:"POST /v1/topics/{topic}/lanes/{lane}/resume" done:"{lane} of {topic} is resumed" help:"Resume a lane." example:"ringback lane resume order.close shop.example:443"`
	Secret laneSecrets  `cmd:"" help:"The secrets that sign a lane's requests instead of the topic's."`
	Keys   oneLaneList  `cmd:"" call:"GET /v1/topics/{topic}/lanes/{lane}/keys" show:"keys" help:"List the public keys with which receivers verify ed25519 signatures." example:"ringback lane keys order.close shop.example:443"`
}

type heldLanes struct {
	Topic string `in:"query" placeholder:"NAME" help:"Only lanes of this topic."`
	Lane  string `in:"query" placeholder:"NAME" help:"Only this lane of the topic: it is read without a search."`
	Limit int    `default:"20" in:"query" placeholder:"N" help:"Number of lanes to list, up to 500."`
	call
}

// laneName are the arguments that name a lane.
type laneName struct {
	topicName
	Lane string `arg:"" help:"Name of the lane: by default the host and the port of the URL."`
}

type oneLane struct {
	laneName
	call
}

type oneLaneList struct {
	laneName
	page
	call
}

type changeLane struct {
	laneName
	conditional
	call
}

type setLane struct {
	laneName
	assigned
	conditional
	call
}

type deleteLane struct {
	laneName
	confirmed
	conditional
	call
}

type pauseLane struct {
	laneName
	pauseNote
	conditional
	call
}

type laneSecrets struct {
	Add    addLaneSecret    `cmd:"" call:"POST /v1/topics/{topic}/lanes/{lane}/secrets" help:"Add a secret. It signs beside the others of the lane." example:"ringback lane secret add order.close shop.example:443"`
	List   oneLaneList      `cmd:"" call:"GET /v1/topics/{topic}/lanes/{lane}/secrets" show:"secrets" help:"List secrets without their values." example:"ringback lane secret list order.close shop.example:443"`
	Remove removeLaneSecret `cmd:"" call:"DELETE /v1/topics/{topic}/lanes/{lane}/secrets/{id}" ask:"Remove secret {id} of {lane}? Receivers that know only this one reject requests from then on." done:"secret {id} is removed" help:"Remove a secret." example:"ringback lane secret remove order.close shop.example:443 1f0a"`
}

type addLaneSecret struct {
	laneName
	newSecret
	conditional
	call
}

type removeLaneSecret struct {
	laneName
	ID string `arg:"" help:"Id of the secret."`
	confirmed
	conditional
	call
}

type scheduleCommand struct {
	List     listAll          `cmd:"" call:"GET /v1/schedules" show:"schedules" help:"List schedules." example:"ringback schedule list"`
	Get      oneSchedule      `cmd:"" call:"GET /v1/schedules/{schedule}" help:"Show a schedule with its next and its last ticks." example:"ringback schedule get nightly"`
	Put      putSchedule      `cmd:"" call:"PUT /v1/schedules/{schedule}" done:"{name} is {state}; ringback schedule get {name} shows its next ticks" help:"Create or replace a schedule." example:"ringback schedule put nightly cron='0 3 * * *' timezone=Europe/Berlin job.topic=report job.url=https://shop.example/report"`
	Delete   deleteSchedule   `cmd:"" call:"DELETE /v1/schedules/{schedule}" managed:"" ask:"Remove schedule {schedule}? Jobs that it has made stay." done:"{schedule} is removed" help:"Remove a schedule. Jobs that it has made stay." example:"ringback schedule delete nightly"`
	Run      oneSchedule      `cmd:"" call:"POST /v1/schedules/{schedule}/run" done:"registered {id}" help:"Register its job now, beside its ticks." example:"ringback schedule run nightly"`
	Pause    pauseSchedule    `cmd:"" call:"POST /v1/schedules/{schedule}/pause" done:"{name} is paused" help:"Pause a schedule." example:"ringback schedule pause nightly"`
	Resume   changeSchedule   `cmd:"" call:"POST /v1/schedules/{schedule}/resume" done:"{name} is resumed" help:"Resume a schedule." example:"ringback schedule resume nightly"`
	Next     oneSchedule      `cmd:"" call:"GET /v1/schedules/{schedule}" items:"next" show:"ticks" help:"Show the next ticks of a schedule." example:"ringback schedule next nightly"`
	Preview  previewSchedule  `cmd:"" call:"GET /v1/schedules/preview" show:"ticks" help:"Show the ticks of a schedule before it is stored." example:"ringback schedule preview --cron '0 3 * * *' --timezone Europe/Berlin"`
	Backfill backfillSchedule `cmd:"" call:"POST /v1/schedules/{schedule}/backfill" ask:"Run the ticks of {schedule} from {after} until {before}?" help:"Run the ticks of a past time." example:"ringback schedule backfill nightly 2030-01-01T00:00:00Z 2030-01-08T00:00:00Z --dry-run"`
}

// scheduleName is the argument that names a schedule.
type scheduleName struct {
	Schedule string `arg:"" help:"Name of the schedule."`
}

type oneSchedule struct {
	scheduleName
	call
}

type changeSchedule struct {
	scheduleName
	conditional
	call
}

type putSchedule struct {
	scheduleName
	assigned
	conditional
	call
}

type deleteSchedule struct {
	scheduleName
	confirmed
	conditional
	call
}

type pauseSchedule struct {
	scheduleName
	pauseNote
	conditional
	call
}

type previewSchedule struct {
	Cron     string `placeholder:"TEXT" help:"Minute, hour, day of month, month and day of week, or a macro such as @daily."`
	Timezone string `placeholder:"NAME" help:"Time zone of cron, such as Europe/Berlin. Default: UTC."`
	Every    string `placeholder:"DURATION" help:"Interval, instead of cron."`
	Offset   string `placeholder:"DURATION" help:"Added to every tick of an interval."`
	StartsAt string `placeholder:"TIME" help:"No tick before this time."`
	EndsAt   string `placeholder:"TIME" help:"No tick from this time on."`
	From     string `placeholder:"TIME" help:"Show ticks from this time on. Default: now."`
	Limit    int    `default:"10" in:"none" placeholder:"N" help:"Number of ticks (default 10)."`
	call
}

type backfillSchedule struct {
	scheduleName
	After  string `arg:"" help:"Time of the earliest tick."`
	Before string `arg:"" help:"Ticks from this time on do not run."`
	Rate   string `placeholder:"N/DURATION" help:"Ticks in any such time. Default: 10/s."`
	DryRun bool   `help:"Only count the ticks."`
	confirmed
	conditional
	call
}

type tokenCommand struct {
	List   listAll     `cmd:"" call:"GET /v1/tokens" show:"tokens" help:"List tokens." example:"ringback token list"`
	Create createToken `cmd:"" call:"POST /v1/tokens" help:"Create a token. It is shown once." example:"ringback token create shop-api --role publish --topics 'order.*' --expires-in 90d"`
	Get    oneToken    `cmd:"" call:"GET /v1/tokens/{id}" help:"Show a token without its secret." example:"ringback token get 4Jx2mP0a"`
	Revoke revokeToken `cmd:"" call:"DELETE /v1/tokens/{id}" ask:"Revoke token {id}? Programs that use it are refused within 5 seconds." done:"{id} is revoked" help:"Revoke a token." example:"ringback token revoke 4Jx2mP0a"`
}

type createToken struct {
	Name           string   `arg:"" help:"Name of the token, which is the actor of changes."`
	Role           string   `required:"" placeholder:"ROLE" help:"read, publish, operate or admin."`
	TokenNamespace string   `name:"for-namespace" field:"namespace" placeholder:"NAME" help:"Namespace of the token; root tokens only. Default: that of the request."`
	Topics         []string `placeholder:"TOPIC" help:"Topics that it may use, separated by commas; order.* for all that begin so. Default: all."`
	Bodies         *bool    `negatable:"" help:"Whether it may read bodies. Default: not with the role read."`
	ExpiresIn      string   `placeholder:"DURATION" help:"When it expires, such as 90d. Default: never."`
	call
}

type oneToken struct {
	ID string `arg:"" help:"Id of the token."`
	call
}

type revokeToken struct {
	ID string `arg:"" help:"Id of the token."`
	confirmed
	call
}

type namespaceCommand struct {
	List   listAll         `cmd:"" call:"GET /v1/namespaces" show:"namespaces" help:"List namespaces." example:"ringback namespace list"`
	Get    oneNamespace    `cmd:"" call:"GET /v1/namespaces/{name}" help:"Show a namespace with its quota." example:"ringback namespace get shop"`
	Put    putNamespace    `cmd:"" call:"PUT /v1/namespaces/{name}" done:"{namespace} has revision {revision}" help:"Create a namespace, or replace its quota." example:"ringback namespace put shop quota.pending=100000 quota.rate=500/s"`
	Delete deleteNamespace `cmd:"" call:"DELETE /v1/namespaces/{name}" count:"/v1/stats" ask:"Remove namespace {name}?" done:"{name} is removed" help:"Remove a namespace." example:"ringback namespace delete shop"`
}

type oneNamespace struct {
	Name string `arg:"" help:"Name of the namespace."`
	call
}

type putNamespace struct {
	Name string `arg:"" help:"Name of the namespace."`
	assigned
	conditional
	call
}

type deleteNamespace struct {
	Name  string `arg:"" help:"Name of the namespace."`
	Purge bool   `in:"query" help:"Also remove its jobs and settings."`
	confirmed
	conditional
	call
}
