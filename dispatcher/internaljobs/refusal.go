package internaljobs

import (
	"errors"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

const (
	// maxReason bounds the reason of a refusal that is kept, in bytes.
	maxReason = 300
	// minQuotaWait and MaxQuotaWait bound the time to the next step after one whose jobs exceeded a quota.
	minQuotaWait = time.Second
	MaxQuotaWait = time.Minute
)

// Reason returns why a step could not make a job, for people, on one line.
func Reason(err error) string { return policy.OneLine(err.Error(), maxReason) }

// IsRefused reports whether an error about a job that a step makes is the same however often the step is repeated.
func IsRefused(err error) bool {
	_, invalid := errors.AsType[*job.InvalidError](err)
	_, undeclared := errors.AsType[*job.UndeclaredTopicError](err)
	return invalid || undeclared
}

// QuotaWait returns the time to the next step if an error is that of a job that exceeds a quota.
func QuotaWait(err error) (wait time.Duration, over bool) {
	quota, over := errors.AsType[*job.QuotaError](err)
	if !over {
		return 0, false
	}
	return min(max(quota.RetryAfter, minQuotaWait), MaxQuotaWait), true
}
