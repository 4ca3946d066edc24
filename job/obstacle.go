package job

import (
	"net/url"
	"time"
)

// Obstacle is what keeps a job, or the jobs of a lane, from running.
type Obstacle struct {
	Code  ObstacleCode
	Facts string    // a sentence without its full stop
	Until time.Time // when it ends by itself, by the store's clock; zero: unknown
	// Since is when a pause or a receiver's failures began, By and Note are of a pause; zero: unknown.
	Since time.Time
	By    string
	Note  string
	// Remedy ends it, or lets its next occurrence come later; zero: no request does.
	Remedy Remedy
	// Hint continues Facts with what the request of Remedy does; empty: there is none.
	Hint string
}

// Detail returns a sentence that names the obstacle and what to do about it, for clients of the API.
func (o *Obstacle) Detail() string { return o.Facts + o.Hint + "." }

// General returns the obstacle without what tells settings, for those who may not read them.
func (o *Obstacle) General() *Obstacle {
	return &Obstacle{Code: o.Code, Facts: obstacles[o.Code].general, Until: o.Until}
}

// ObstacleCode says why an Obstacle is there: see Kind for what is waited for.
type ObstacleCode string

// The obstacles. Clients must accept unknown ones.
const (
	ObstacleDue         ObstacleCode = "due"          // the job's due time
	ObstacleRetry       ObstacleCode = "retry"        // its due time after a failed attempt
	ObstacleEnd         ObstacleCode = "end"          // its end: it will be dead without another attempt
	ObstacleTopicPaused ObstacleCode = "topic_paused" // also: its policy is not readable
	ObstacleLanePaused  ObstacleCode = "lane_paused"  // also: its settings are not readable
	ObstacleSecret      ObstacleCode = "secret"       // a secret that the attempt needs is not readable
	ObstacleBreakerOpen ObstacleCode = "breaker_open" // no attempt before the breaker's cooldown ends
	// ObstacleBreakerHalfOpen: a single attempt, the probe, decides whether the breaker closes.
	ObstacleBreakerHalfOpen ObstacleCode = "breaker_half_open"
	ObstacleRetryAfter      ObstacleCode = "retry_after" // the receiver asked for a pause
	ObstacleFailing         ObstacleCode = "failing"     // the receiver fails, of lanes only
	// ObstacleCooldown is one by Ringback: the breaker opened, or an attempt was not readable.
	ObstacleCooldown  ObstacleCode = "cooldown"
	ObstacleOrder     ObstacleCode = "order"      // another job of the ordered lane has to end first
	ObstacleLaneFull  ObstacleCode = "lane_full"  // as many attempts in flight as the lane_concurrency
	ObstacleTopicFull ObstacleCode = "topic_full" // as many attempts in flight as a process makes of the topic
	ObstacleLaneRate  ObstacleCode = "lane_rate"  // the lane_rate is used up
	ObstacleTopicRate ObstacleCode = "topic_rate" // the rate of the topic is used up
	ObstacleWorker    ObstacleCode = "worker"     // no worker is free, or no process delivers
)

// Severity is how bad an obstacle is for the jobs of a lane: the larger, the worse.
type Severity int

// The severities of obstacles. Zero: it is of single jobs, or unknown.
const (
	SeverityLimit    Severity = iota + 1 // a limit: the lane delivers other jobs meanwhile
	SeverityDecision                     // a pause by somebody, or a cooldown by Ringback
	SeverityFailing                      // the receiver is in trouble
)

// obstacleKind is what is known of an obstacle.
type obstacleKind struct {
	kind, scope string
	severity    Severity
	// general is a sentence about the kind that names no setting.
	general string
}

const (
	ofJob   = "job"
	ofLane  = "lane"
	ofTopic = "topic"
)

// Sentences of kinds that several codes have in common.
const (
	generalPause    = "The topic or the lane of the job is paused"
	generalBreaker  = "The breaker of the job's lane is open, or waits for its probe"
	generalCooldown = "The lane of the job has a cooldown"
	generalRate     = "The rate of the job's topic or lane is used up"
)

// obstacles are all obstacles. A new one is also in openapi.yaml, docs/waiting.md and, if it is of a lane,
// docs/lanes.md: a test compares them.
var obstacles = map[ObstacleCode]obstacleKind{
	ObstacleDue:             {"due", ofJob, 0, "The job waits for its due time"},
	ObstacleRetry:           {"retry", ofJob, 0, "The job waits for its next attempt after a failed one"},
	ObstacleEnd:             {"end", ofJob, 0, "The job will be dead without another attempt"},
	ObstacleTopicPaused:     {"paused", ofTopic, SeverityDecision, generalPause},
	ObstacleLanePaused:      {"paused", ofLane, SeverityDecision, generalPause},
	ObstacleSecret:          {"secret", ofJob, 0, "A secret that the attempt needs is not readable"},
	ObstacleBreakerOpen:     {"breaker", ofLane, SeverityFailing, generalBreaker},
	ObstacleBreakerHalfOpen: {"breaker", ofLane, SeverityFailing, generalBreaker},
	ObstacleRetryAfter:      {"retry_after", ofLane, SeverityFailing, generalCooldown},
	ObstacleFailing:         {"retry", ofLane, SeverityFailing, "The receiver of the job's lane fails"},
	ObstacleCooldown:        {"cooldown", ofLane, SeverityDecision, generalCooldown},
	ObstacleOrder: {
		"order", ofLane, SeverityFailing, "Another job of the lane, which is ordered, has to end first",
	},
	ObstacleLaneFull: {
		"lane_full", ofLane, SeverityLimit, "The lane of the job has as many attempts in flight as it may have",
	},
	ObstacleTopicFull: {
		"topic_full", ofTopic, 0, "The topic of the job has as many attempts in flight as it may have",
	},
	ObstacleLaneRate:  {"rate", ofLane, SeverityLimit, generalRate},
	ObstacleTopicRate: {"rate", ofTopic, SeverityLimit, generalRate},
	ObstacleWorker:    {"worker", ofJob, 0, "The job waits for a free worker"},
}

// Kind returns what a job that has the obstacle waits for: its code, or what several codes have in common.
func (c ObstacleCode) Kind() string { return obstacles[c].kind }

// Scope returns what the obstacle is of: "job", "lane" or "topic".
func (c ObstacleCode) Scope() string { return obstacles[c].scope }

// Severity returns how bad the obstacle is for a lane.
func (c ObstacleCode) Severity() Severity { return obstacles[c].severity }

// Remedy is a request about a job, a lane or a topic: see the commands and buttons of its action.
type Remedy struct {
	// Action is what the request does: run or edit a job; resume a topic or a lane, set some of its settings, or put
	// them all, since they are not readable; lease from a topic. Each but lease is a command, such as `ringback lane
	// resume`. More may follow.
	Action RemedyAction `api:"action,always"` // empty: there is no remedy
	Topic  string       `api:"topic,always"`
	// Lane is the lane that the request is about. Null: it is about the topic.
	Lane string `api:"lane"`
	// ID is the job that the request is about. Null: it is about the lane or the topic.
	ID string `api:"id"`
}

// RemedyAction is what a Remedy does: the name of a command.
type RemedyAction string

// The actions of remedies. Clients must accept unknown ones.
const (
	RemedyRun    RemedyAction = "run"
	RemedyCancel RemedyAction = "cancel"
	RemedyEdit   RemedyAction = "edit"
	RemedyLease  RemedyAction = "lease"
	RemedyResume RemedyAction = "resume"
	RemedySet    RemedyAction = "set" // change settings
	RemedyPut    RemedyAction = "put" // replace all settings, which are not readable
)

// requests are the method and the end of the path of each action.
var requests = map[RemedyAction][2]string{
	RemedyRun: {"POST ", "/run"}, RemedyCancel: {"DELETE ", ""}, RemedyEdit: {"PATCH ", ""},
	RemedyLease: {"POST ", "/lease"}, RemedyResume: {"POST ", "/resume"}, RemedySet: {"PATCH ", ""},
	RemedyPut: {"PUT ", ""},
}

// Request returns method and path of the request in the API.
func (r Remedy) Request() string {
	path := "/v1/topics/" + r.Topic
	switch {
	case r.ID != "":
		path = "/v1/jobs/" + r.ID
	case r.Lane != "":
		path += "/lanes/" + url.PathEscape(r.Lane)
	}
	request := requests[r.Action]
	return request[0] + path + request[1]
}
