package store

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Queue is the part of a shard that a claim loop uses: it waits for due jobs, claims them and settles their attempts.
type Queue interface {
	// Claim leases ready and due jobs of the requested queues to the caller under token, in due order within a queue,
	// by the rules of a claim (see the package). A lease lasts the job's own timeout, else that of its QueueClaim, plus
	// Margin. A repeat with the same token returns the jobs that are still leased under it. When the rest of a queue
	// comes before the head of the agenda, WaitAgenda returns. The Revision tells the caller that its policy is old.
	Claim(ctx context.Context, token Token, request ClaimRequest) (ClaimResult, error)

	// ClaimExpired leases jobs whose time to live is over and that no attempt holds, the earliest end first, so that
	// the caller can end them. Claim does not reach those of throttled queues. The time to live ends at the job's
	// expiry or at FirstDueAt + MaxAge of its NewJob, whichever is earlier. Due times, pauses, cooldowns, breakers,
	// rates and limits do not matter, and the jobs count neither as starts nor as probes. A job is returned once for
	// its MaxAge, unless it is edited or revived, because the topic's policy may have changed. A repeat with the same
	// token returns the jobs that are still leased under it.
	ClaimExpired(ctx context.Context, token Token, request ClaimExpiredRequest) ([]ClaimedJob, error)

	// Settle ends up to MaxBatch attempts, or extends their leases, in order, and returns one error for each, in order:
	// nil, or ErrLeaseLost when the job is not leased under the settlement's lease, or is of another queue. A refused
	// settlement changes nothing. The error of an extension is ErrCancelRequested when a cancellation was requested;
	// the lease is extended all the same. With next, Settle claims after the settlements, under the same token or that
	// of next and in the same round trip, and returns what Claim would have returned. A settlement that was sent is
	// recorded even if ctx ends.
	//
	// The attempts that count change the health of their lanes, each lane's once in a call (policy.Health.After). The
	// result has the Health of lanes that failed now or before, also without next.
	Settle(ctx context.Context, token Token, items []Settlement, next *ClaimRequest) ([]error, ClaimResult, error)

	// Wait blocks until queues of one of the groups (GroupOf) are notified, and returns some of them. A queue may be
	// listed although it has no claimable jobs, or is of another group by now. Wait returns none and no error after
	// Timeout, and soon after ctx ends. When a process dies with a wake-up, Carry sends it again after RenotifyAfter.
	// While nobody waits for a topic's own group, its wake-ups are kept, once for each queue, and Carry looks at them
	// every RenotifyUnreadAfter only: one that is lost by the first who waits is sent again that much later. A process
	// makes at most one Wait per shard and group at a time; each may use a connection. Waits of several processes are
	// served in the order in which they began.
	Wait(ctx context.Context, options WaitOptions) ([]job.Queue, error)

	// Notify wakes a waiting claim loop of each one's group, by its topic's policy, for up to MaxBatch queues. Queues
	// without claimable jobs may be ignored.
	Notify(ctx context.Context, queues []job.Queue) error

	// Permit grants starts to up to MaxBatch topics with a rate, on the shard that ShardOfTopic names for each, and
	// returns one grant for each request, in order. In no window of the rate's length are more starts granted than the
	// rate allows, over all callers, counted as in Claim. The caller must claim no more jobs than were granted and
	// begin no attempt after Slack.
	Permit(ctx context.Context, token Token, requests []PermitRequest) ([]Permit, error)
}

// WaitOptions bounds a Wait.
type WaitOptions struct {
	Groups  []string      // at least one
	Max     int           // queues to return at most; zero: MaxBatch
	Timeout time.Duration // zero: 5 s
}

// PermitRequest asks for starts of a topic.
type PermitRequest struct {
	Namespace string
	Topic     string
	Rate      policy.Rate
	Starts    int           // at most
	Slack     time.Duration // as in ClaimRequest
}

// Permit is a grant of starts.
type Permit struct {
	// Starts is the number of granted starts. It is less than requested when the rate allows no more now.
	Starts int
	// At is the store's clock at the grant. The starts count until At + Slack + the rate's window.
	At time.Time
	// Next is the time until more can be granted; zero when all requested starts were granted.
	Next time.Duration
}
