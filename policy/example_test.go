package policy_test

import (
	"fmt"
	"time"

	"github.com/ringback/ringback/policy"
)

// A job follows a ladder of two rungs, then dies. A random number of 0 adds no jitter to the waits.
func ExampleJudge() {
	topic := policy.Topic{Ladder: policy.Ladder{15 * time.Second, 3 * time.Minute}}
	terms := topic.WithDefaults(policy.Builtin()).Terms(policy.Terms{})
	for failed := 1; failed <= 3; failed++ {
		v := policy.Judge(terms, policy.Result{Status: 500}, policy.Progress{FailedAttempts: failed}, 0)
		fmt.Printf("%s wait=%s reason=%q\n", v.Kind, v.Wait, v.Reason)
	}
	// Output:
	// again wait=15s reason=""
	// again wait=3m0s reason=""
	// dead wait=0s reason="exhausted"
}

// The receiver asks for a longer wait than the rung: the job waits for that long, and its whole lane for up to a
// minute.
func ExampleJudge_retryAfter() {
	terms := policy.Builtin().Terms(policy.Terms{})
	busy := policy.Result{Status: 429, RetryAfter: 2 * time.Minute}
	v := policy.Judge(terms, busy, policy.Progress{FailedAttempts: 1}, 0)
	fmt.Println(v.Kind, v.Wait, v.LaneWait)
	// Output: again 2m0s 1m0s
}
