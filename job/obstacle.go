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
	// Since, By and Note are of a pause; zero: unknown.
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
	return &Obstacle{Code: o.Code, Facts: generalFacts[o.Code.Kind()], Until: o.Until}
}

// ObstacleCode is the kind of an Obstacle.
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
	// ObstacleCooldown is one by Ringback: the breaker opened, or an attempt was not readable.
	ObstacleCooldown  ObstacleCode = "cooldown"
	ObstacleOrder     ObstacleCode = "order"      // another job of the ordered lane has to end first
	ObstacleLaneFull  ObstacleCode = "lane_full"  // as many attempts in flight as the lane_concurrency
	ObstacleTopicFull ObstacleCode = "topic_full" // as many attempts in flight as a process makes of the topic
	ObstacleLaneRate  ObstacleCode = "lane_rate"  // the lane_rate is used up
	ObstacleTopicRate ObstacleCode = "topic_rate" // the rate of the topic is used up
	ObstacleWorker    ObstacleCode = "worker"     // no worker is free, or no process delivers
)

// Kind returns what a job that has the obstacle waits for: a code, or what several codes have in common.
func (c ObstacleCode) Kind() string {
	switch c {
	case ObstacleTopicPaused, ObstacleLanePaused:
		return "paused"
	case ObstacleLaneRate, ObstacleTopicRate:
		return "rate"
	case ObstacleBreakerOpen, ObstacleBreakerHalfOpen:
		return "breaker"
	default:
		return string(c)
	}
}

// Scope returns what the obstacle is of: "job", "lane" or "topic".
func (c ObstacleCode) Scope() string {
	switch c {
	case ObstacleDue, ObstacleRetry, ObstacleEnd, ObstacleSecret, ObstacleWorker:
		return "job"
	case ObstacleTopicPaused, ObstacleTopicFull, ObstacleTopicRate:
		return "topic"
	default:
		return "lane"
	}
}

// Severity is how bad an obstacle is for the jobs of a lane: the larger, the worse.
type Severity int

// The severities of obstacles.
const (
	SeverityLimit    Severity = iota + 1 // a limit: the lane delivers other jobs meanwhile
	SeverityDecision                     // a pause by somebody, or a cooldown by Ringback
	SeverityFailing                      // the receiver is in trouble
)

// Severity returns how bad the obstacle is for a lane; zero: it is of single jobs, or unknown.
func (c ObstacleCode) Severity() Severity {
	switch c {
	case ObstacleBreakerOpen, ObstacleBreakerHalfOpen, ObstacleRetryAfter, ObstacleOrder:
		return SeverityFailing
	case ObstacleTopicPaused, ObstacleLanePaused, ObstacleCooldown:
		return SeverityDecision
	case ObstacleLaneFull, ObstacleLaneRate, ObstacleTopicRate:
		return SeverityLimit
	default:
		return 0
	}
}

// generalFacts are sentences about the kinds of obstacles that name no setting.
var generalFacts = map[string]string{
	"due":         "The job waits for its due time",
	"retry":       "The job waits for its next attempt after a failed one",
	"end":         "The job will be dead without another attempt",
	"paused":      "The topic or the lane of the job is paused",
	"order":       "Another job of the lane, which is ordered, has to end first",
	"lane_full":   "The lane of the job has as many attempts in flight as it may have",
	"topic_full":  "The topic of the job has as many attempts in flight as it may have",
	"rate":        "The rate of the job's topic or lane is used up",
	"breaker":     "The breaker of the job's lane is open, or waits for its probe",
	"retry_after": "The lane of the job has a cooldown",
	"cooldown":    "The lane of the job has a cooldown",
	"secret":      "A secret that the attempt needs is not readable",
	"worker":      "The job waits for a free worker",
}

// Remedy is a request about a job, a lane or a topic. The commands and the console have one for each.
type Remedy struct {
	Action RemedyAction `api:"action"` // empty: there is no remedy
	Topic  string       `api:"topic,always"`
	Lane   string       `api:"lane"` // empty: of the whole topic
	ID     string       `api:"id"`   // of a job; empty: of its lane or topic
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
