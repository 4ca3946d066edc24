package cli

type topicCommand struct {
	// List topics.
	//
	//	ringback topic list -o wide
	List listAll `cmd:"" call:"GET /v1/topics" show:"topics"`
	// Show the policy of a topic.
	//
	//	ringback topic get order.close
	Get plainCommand[topicName] `cmd:"" call:"GET /v1/topics/{topic}"`
	// Change settings of a topic, and create it if need be.
	//
	//	ringback topic set order.close ladder=15s,3m,10m rate=100/s
	//
	// Done: {topic} has revision {revision}
	Set setCommand[topicName] `cmd:"" call:"PATCH /v1/topics/{topic}" create:""`
	// Replace the whole policy of a topic.
	//
	//	ringback topic put order.close -f policy.json
	//
	// Done: {topic} has revision {revision}
	Put setCommand[topicName] `cmd:"" call:"PUT /v1/topics/{topic}"`
	// Delete a topic: its policy, its secrets and the settings of its lanes.
	//
	//	ringback topic delete order.close
	//
	// Asks: Delete topic {topic}, its policy, secrets and the settings of its lanes?
	// Done: {topic} is deleted
	Delete deleteTopic `cmd:"" call:"DELETE /v1/topics/{topic}" managed:"" count:"/v1/topics/{}/stats"`
	// Pause a topic. Jobs are still accepted.
	//
	//	ringback topic pause order.close --note 'deploying the shop'
	//
	// Done: {topic} is paused: jobs are accepted, and wait
	Pause pauseCommand[topicName] `cmd:"" call:"POST /v1/topics/{topic}/pause"`
	// Resume a topic.
	//
	//	ringback topic resume order.close
	//
	// Done: {topic} is resumed
	Resume changeCommand[topicName] `cmd:"" call:"POST /v1/topics/{topic}/resume"`
	// The secrets that sign a topic's requests.
	Secret topicSecrets `cmd:""`
	// List the public keys with which receivers verify ed25519 signatures.
	//
	//	ringback topic keys order.close
	Keys listCommand[topicName] `cmd:"" call:"GET /v1/topics/{topic}/keys" show:"keys"`
}

type deleteTopic struct {
	topicName
	// Cancel its unfinished jobs and remove its dead jobs first.
	Purge bool `in:"query"`
	confirmed
	conditional
	call
}

type topicSecrets struct {
	// Add a secret. It signs beside the others.
	//
	//	ringback topic secret add order.close
	Add addSecretCommand[topicName] `cmd:"" call:"POST /v1/topics/{topic}/secrets"`
	// List secrets without their values.
	//
	//	ringback topic secret list order.close
	List listCommand[topicName] `cmd:"" call:"GET /v1/topics/{topic}/secrets" show:"secrets"`
	// Remove a secret.
	//
	//	ringback topic secret remove order.close 1f0a
	//
	// Asks: Remove secret {id} of {topic}? Receivers that know only this one reject requests from then on.
	// Done: secret {id} is removed
	Remove removeSecretCommand[topicName] `cmd:"" call:"DELETE /v1/topics/{topic}/secrets/{id}"`
}

type laneCommand struct {
	// List the lanes of a topic that have settings, or those whose receivers fail.
	//
	//	ringback lane list order.close
	List laneListCommand `cmd:""`
	// List the lanes whose receivers fail or that hold jobs back now, the worst first, and why.
	//
	//	ringback lane troubled -o wide
	Troubled troubledLanes `cmd:"" call:"GET /v1/lanes/troubled" show:"troubled"`
	// Show the settings of a lane.
	//
	//	ringback lane get order.close shop.example:443
	Get plainCommand[laneName] `cmd:"" call:"GET /v1/topics/{topic}/lanes/{lane}"`
	// Change settings of a lane.
	//
	//	ringback lane set order.close shop.example:443 lane_rate=10/s
	//
	// Done: {lane} of {topic} has revision {revision}
	Set setCommand[laneName] `cmd:"" call:"PATCH /v1/topics/{topic}/lanes/{lane}"`
	// Replace all settings of a lane.
	//
	//	ringback lane put order.close shop.example:443 -f lane.json
	//
	// Done: {lane} of {topic} has revision {revision}
	Put setCommand[laneName] `cmd:"" call:"PUT /v1/topics/{topic}/lanes/{lane}"`
	// Remove the settings and secrets of a lane.
	//
	//	ringback lane delete order.close shop.example:443
	//
	// Asks: Remove the settings and secrets of lane {lane} of {topic}?
	// Done: {lane} of {topic} has the settings of its topic
	Delete removeCommand[laneName] `cmd:"" call:"DELETE /v1/topics/{topic}/lanes/{lane}" managed:""`
	// Send a test event to a lane, whatever it subscribes to, and show what its receiver answers.
	//
	//	ringback lane test merchants shop-1 --type order.paid
	Test testLane `cmd:"" call:"POST /v1/topics/{topic}/lanes/{lane}/test"`
	// Pause a lane. Jobs are still accepted.
	//
	//	ringback lane pause order.close shop.example:443
	//
	// Done: {lane} of {topic} is paused: jobs are accepted, and wait
	Pause pauseCommand[laneName] `cmd:"" call:"POST /v1/topics/{topic}/lanes/{lane}/pause"`
	// Resume a lane.
	//
	//	ringback lane resume order.close shop.example:443
	//
	// Done: {lane} of {topic} is resumed
	Resume changeCommand[laneName] `cmd:"" call:"POST /v1/topics/{topic}/lanes/{lane}/resume"`
	// The secrets that sign a lane's requests instead of the topic's.
	Secret laneSecrets `cmd:""`
	// List the public keys with which receivers verify ed25519 signatures.
	//
	//	ringback lane keys order.close shop.example:443
	Keys listCommand[laneName] `cmd:"" call:"GET /v1/topics/{topic}/lanes/{lane}/keys" show:"keys"`
}

type testLane struct {
	laneName
	// Type of the event. Default: test.
	Type string `in:"query" placeholder:"TYPE"`
	// How long to wait for the answer, up to 60s. Default: 20s.
	Wait string `in:"query" placeholder:"DURATION"`
	call
}

type troubledLanes struct {
	// Only lanes of this topic.
	Topic string `in:"query" placeholder:"NAME"`
	// Only this lane of the topic: it is read without a search.
	Lane string `in:"query" placeholder:"NAME"`
	// Number of lanes to list, up to 500.
	Limit int `default:"20" in:"query" placeholder:"N"`
	call
}

type laneSecrets struct {
	// Add a secret. It signs beside the others of the lane.
	//
	//	ringback lane secret add order.close shop.example:443
	Add addSecretCommand[laneName] `cmd:"" call:"POST /v1/topics/{topic}/lanes/{lane}/secrets"`
	// List secrets without their values.
	//
	//	ringback lane secret list order.close shop.example:443
	List listCommand[laneName] `cmd:"" call:"GET /v1/topics/{topic}/lanes/{lane}/secrets" show:"secrets"`
	// Remove a secret.
	//
	//	ringback lane secret remove order.close shop.example:443 1f0a
	//
	// Asks: Remove secret {id} of {lane}? Receivers that know only this one reject requests from then on.
	// Done: secret {id} is removed
	Remove removeSecretCommand[laneName] `cmd:"" call:"DELETE /v1/topics/{topic}/lanes/{lane}/secrets/{id}"`
}

type scheduleCommand struct {
	// List schedules.
	//
	//	ringback schedule list
	List listAll `cmd:"" call:"GET /v1/schedules" show:"schedules"`
	// Show a schedule with its next and its last ticks.
	//
	//	ringback schedule get nightly
	Get plainCommand[scheduleName] `cmd:"" call:"GET /v1/schedules/{schedule}"`
	// Create or replace a schedule.
	//
	//	ringback schedule put nightly cron='0 3 * * *' timezone=Europe/Berlin \
	//		job.topic=report job.url=https://shop.example/report
	//
	// Done: {name} is {state}; ringback schedule get {name} shows its next ticks
	Put setCommand[scheduleName] `cmd:"" call:"PUT /v1/schedules/{schedule}"`
	// Remove a schedule. Jobs that it has made stay.
	//
	//	ringback schedule delete nightly
	//
	// Asks: Remove schedule {schedule}? Jobs that it has made stay.
	// Done: {schedule} is removed
	Delete removeCommand[scheduleName] `cmd:"" call:"DELETE /v1/schedules/{schedule}" managed:""`
	// Register its job now, beside its ticks.
	//
	//	ringback schedule run nightly
	//
	// Done: registered {id}
	Run plainCommand[scheduleName] `cmd:"" call:"POST /v1/schedules/{schedule}/run"`
	// Pause a schedule.
	//
	//	ringback schedule pause nightly
	//
	// Done: {name} is paused
	Pause pauseCommand[scheduleName] `cmd:"" call:"POST /v1/schedules/{schedule}/pause"`
	// Resume a schedule.
	//
	//	ringback schedule resume nightly
	//
	// Done: {name} is resumed
	Resume changeCommand[scheduleName] `cmd:"" call:"POST /v1/schedules/{schedule}/resume"`
	// Show the next ticks of a schedule.
	//
	//	ringback schedule next nightly
	Next plainCommand[scheduleName] `cmd:"" call:"GET /v1/schedules/{schedule}" items:"next" show:"ticks"`
	// Show the ticks of a schedule before it is stored.
	//
	//	ringback schedule preview --cron '0 3 * * *' --timezone Europe/Berlin
	Preview previewSchedule `cmd:"" call:"GET /v1/schedules/preview" show:"ticks"`
	// Run the ticks of a past time.
	//
	//	ringback schedule backfill nightly 2030-01-01T00:00:00Z 2030-01-08T00:00:00Z --dry-run
	//
	// Asks: Run the ticks of {schedule} from {after} until {before}?
	Backfill backfillSchedule `cmd:"" call:"POST /v1/schedules/{schedule}/backfill"`
}

type previewSchedule struct {
	// Minute, hour, day of month, month and day of week, or a macro such as @daily.
	Cron string `placeholder:"TEXT"`
	// Time zone of cron, such as Europe/Berlin. Default: UTC.
	Timezone string `placeholder:"NAME"`
	// Interval, instead of cron.
	Every string `placeholder:"DURATION"`
	// Added to every tick of an interval.
	Offset string `placeholder:"DURATION"`
	// No tick before this time.
	StartsAt string `placeholder:"TIME"`
	// No tick from this time on.
	EndsAt string `placeholder:"TIME"`
	// Show ticks from this time on. Default: now.
	From string `placeholder:"TIME"`
	// Number of ticks (default 10).
	Limit int `default:"10" in:"none" placeholder:"N"`
	call
}

type backfillSchedule struct {
	scheduleName
	// Time of the earliest tick.
	After string `arg:""`
	// Ticks from this time on do not run.
	Before string `arg:""`
	// Ticks in any such time. Default: 10/s.
	Rate string `placeholder:"N/DURATION"`
	// Only count the ticks.
	DryRun bool
	confirmed
	conditional
	call
}

type tokenCommand struct {
	// List tokens.
	//
	//	ringback token list
	List listAll `cmd:"" call:"GET /v1/tokens" show:"tokens"`
	// Create a token. It is shown once.
	//
	//	ringback token create shop-api --role publish --topics 'order.*' --expires-in 90d
	Create createToken `cmd:"" call:"POST /v1/tokens"`
	// Show a token without its secret.
	//
	//	ringback token get 4Jx2mP0a
	Get plainCommand[tokenID] `cmd:"" call:"GET /v1/tokens/{id}"`
	// Revoke a token.
	//
	//	ringback token revoke 4Jx2mP0a
	//
	// Asks: Revoke token {id}? Programs that use it are refused within 5 seconds.
	// Done: {id} is revoked
	Revoke revokeToken `cmd:"" call:"DELETE /v1/tokens/{id}"`
}

type createToken struct {
	// Name of the token, which is the actor of changes.
	Name string `arg:""`
	// read, publish, operate or admin.
	Role string `required:"" placeholder:"ROLE"`
	// Namespace of the token; root tokens only. Default: that of the request.
	TokenNamespace string `name:"for-namespace" field:"namespace" placeholder:"NAME"`
	// Topics that it may use, separated by commas; order.* for all that begin so. Default: all.
	Topics []string `placeholder:"TOPIC"`
	// Whether it may read bodies. Default: not with the role read.
	Bodies *bool `negatable:""`
	// When it expires, such as 90d. Default: never.
	ExpiresIn string `placeholder:"DURATION"`
	call
}

type revokeToken struct {
	tokenID
	confirmed
	call
}

type namespaceCommand struct {
	// List namespaces.
	//
	//	ringback namespace list
	List listAll `cmd:"" call:"GET /v1/namespaces" show:"namespaces"`
	// Show a namespace with its quota.
	//
	//	ringback namespace get shop
	Get plainCommand[namespaceName] `cmd:"" call:"GET /v1/namespaces/{name}"`
	// Create a namespace, or replace its quota.
	//
	//	ringback namespace put shop quota.pending=100000 quota.rate=500/s
	//
	// Done: {namespace} has revision {revision}
	Put setCommand[namespaceName] `cmd:"" call:"PUT /v1/namespaces/{name}"`
	// Remove a namespace.
	//
	//	ringback namespace delete shop
	//
	// Asks: Remove namespace {name}?
	// Done: {name} is removed
	Delete deleteNamespace `cmd:"" call:"DELETE /v1/namespaces/{name}" count:"/v1/stats"`
}

type deleteNamespace struct {
	namespaceName
	// Also remove its jobs and settings.
	Purge bool `in:"query"`
	confirmed
	conditional
	call
}
