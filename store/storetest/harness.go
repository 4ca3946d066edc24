package storetest

import (
	"testing"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// An Engine is what the suite needs to know of an engine under test.
type Engine struct {
	// Store is empty: no job, no topic, nothing remembered.
	Store store.Store
	// Advance moves the store's clock forward, that of leases, of carrier locks and of remembered tokens too; between
	// two calls the clock stands still. It need not wake anybody. Nil: the engine owns a real clock, and the suite waits
	// for short leases instead.
	Advance func(d time.Duration)
	// Step sets the store's clock ahead or back without time passing. Nil: the engine's clock cannot be set, or nothing but
	// due times follows it, which tests of its own show.
	Step func(d time.Duration)
	// Now is the store's clock; nil: time.Now, exact enough for a tolerance of one second.
	Now func() time.Time
	// Defaults is the complete policy under every topic's that the engine was opened with.
	Defaults policy.Topic
	// Reopen closes the store and opens the same data again; nil when that is not possible. Jobs held at that moment
	// may be held still, or have gone back as lost.
	Reopen func() store.Store
	// Recheck has the engine check the whole of a shard, as after a loss of its last writes, and answers what Repair
	// repaired. The suite calls it often, and it must find nothing. Nil: the engine never needs to.
	Recheck func(t *testing.T, shard int) map[store.RepairKind]int
}

// Run holds an engine against the contract. It calls open once for every test, with that test's t; what open acquires
// it releases in t.Cleanup. Opening should be cheap (below 50 ms): start servers once, and empty them here. A second
// Close of a store must do no harm. After each test Check walks what the test left. Tests of one engine run one after the other.
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
