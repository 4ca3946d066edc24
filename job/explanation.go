package job

import (
	"time"

	"github.com/ringback/ringback/policy"
)

// Explanation describes an unfinished job as things are now: what applies to its next attempt, and what the job waits
// for.
type Explanation struct {
	// Effective is nil if the settings of the topic or the lane are not readable.
	Effective *Effective
	// WaitingFor is nil while the job is running, and if the store did not return what is needed.
	WaitingFor *Wait
}

// Effective holds the settings of a job's next attempt: those of the job, else of its lane, else of its topic, else
// built in.
type Effective struct {
	URL   string // empty: none
	Terms policy.Terms
	// RetriesLeft is the number of retries after the next attempt.
	RetriesLeft int
}

// Wait is what keeps a job from running.
type Wait struct {
	Kind   WaitKind
	Until  time.Time // when the wait ends by itself, by the store's clock; zero: unknown
	Detail string    // a sentence that names the obstacle, and what to do about it
}

// WaitKind is the kind of a Wait.
type WaitKind string

// The kinds of waits.
const (
	WaitDue        WaitKind = "due"         // its due time
	WaitRetry      WaitKind = "retry"       // its due time after a failed attempt
	WaitEnd        WaitKind = "end"         // its end: it will be dead without another attempt
	WaitPaused     WaitKind = "paused"      // its topic or lane is paused, or their settings are not readable
	WaitOrder      WaitKind = "order"       // another job of its ordered lane has to end first
	WaitLaneFull   WaitKind = "lane_full"   // its lane has as many attempts in flight as its lane_concurrency
	WaitTopicFull  WaitKind = "topic_full"  // its topic has as many attempts in flight as a process makes of it
	WaitRate       WaitKind = "rate"        // the rate of its lane or topic is used up
	WaitBreaker    WaitKind = "breaker"     // its lane's breaker is open or half open
	WaitRetryAfter WaitKind = "retry_after" // its lane's receiver asked for a pause
	WaitCooldown   WaitKind = "cooldown"    // its lane has a cooldown that the receiver did not ask for
	WaitSecret     WaitKind = "secret"      // a secret that its attempt needs is not readable
	WaitWorker     WaitKind = "worker"      // a free worker, or a process that delivers
)

// Summary returns a sentence about a wait of this kind that names no setting, for those who may not read settings.
func (k WaitKind) Summary() string {
	switch k {
	case WaitDue:
		return "The job waits for its due time."
	case WaitRetry:
		return "The job waits for its next attempt after a failed one."
	case WaitEnd:
		return "The job will be dead without another attempt."
	case WaitPaused:
		return "The topic or the lane of the job is paused."
	case WaitOrder:
		return "Another job of the lane, which is ordered, has to end first."
	case WaitLaneFull:
		return "The lane of the job has as many attempts in flight as it may have."
	case WaitTopicFull:
		return "The topic of the job has as many attempts in flight as it may have."
	case WaitRate:
		return "The rate of the job's topic or lane is used up."
	case WaitBreaker:
		return "The breaker of the job's lane is open, or waits for its probe."
	case WaitRetryAfter:
		return "The lane of the job has a cooldown."
	case WaitSecret:
		return "A secret that the attempt needs is not readable."
	default:
		return "The job waits for a free worker."
	}
}
