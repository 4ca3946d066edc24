package storetest

import (
	"testing"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// An Engine is what the suite needs to know of an engine under test.
type Engine struct {
	// Store is empty: no jobs, topics or remembered ids.
	Store store.Store
	// Advance moves the store's clock forward, including leases, carrier locks and tokens. The clock does not move
	// between two calls, and Advance need not end a Wait. Nil: the engine uses the real clock, and the suite waits for
	// short leases.
	Advance func(d time.Duration)
	// Step sets the store's clock ahead or back without time passing. Nil: the engine's clock cannot be set, or only
	// due times follow it, which the engine's own tests show.
	Step func(d time.Duration)
	// Now is the store's clock; nil: time.Now, exact enough for a tolerance of one second.
	Now func() time.Time
	// Defaults is the complete policy under every topic's that the engine was opened with.
	Defaults policy.Topic
	// Reopen closes the store and opens the same data again; nil when that is not possible. Running jobs may stay
	// running, or be due again with a lost attempt.
	Reopen func() store.Store
	// Recheck makes the engine check a whole shard, as after a loss of its last writes, and returns what Repair
	// repaired. It must find nothing. Nil: the engine has no Repair.
	Recheck func(t *testing.T, shard int) map[store.RepairKind]int
	// IsSlow says that each call takes milliseconds of processor time: make test has smaller numbers then, since
	// another engine with the same scripts has the full ones.
	IsSlow bool
}

// Run tests an engine against the contract. It calls open once per test, with that test's t; open releases its
// resources in t.Cleanup. Open should take less than 50 ms: start servers once, and empty them in open. A second Close
// of a store must succeed. Check runs after each test. Tests of one engine run one after the other.
func Run(t *testing.T, open func(t *testing.T) Engine) {
	for _, part := range caseGroups {
		t.Run(part.name, func(t *testing.T) {
			for _, c := range part.cases {
				t.Run(c.name, func(t *testing.T) {
					s := newSuite(t, open)
					c.test(s)
					s.checkInvariants()
				})
			}
		})
	}
	t.Run("Random", func(t *testing.T) { random(t, open) })
}
