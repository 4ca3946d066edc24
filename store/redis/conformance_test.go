package redis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

func TestConformance_OnMiniredis(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Engine {
		clock := newClock(t)
		o := clock.options()
		s := open(t, o)
		markChecked(t, s) // before that nothing is forgotten
		return storetest.Engine{
			Store: s, Defaults: policy.Builtin(), Advance: clock.pass, Step: clock.step, Now: clock.now, IsSlow: true,
			Reopen: func() store.Store {
				require.NoError(t, s.Close())
				s = open(t, o)
				return s
			},
		}
	})
}

// A cluster shows all that a server shows, and that each script's keys are on one node.
func TestConformance_OnACluster(t *testing.T) {
	t.Parallel()
	servers := redistest.StartCluster(t, 3, 0)
	o := Options{URL: createUserOnNodes(t, servers), Logger: quiet}
	runSuite(t, o, func(t *testing.T) {
		for _, node := range servers.Nodes() {
			require.NoError(t, client(t, node.Addr()).FlushAll(t.Context()).Err())
		}
	})
	requireStepBackDetected(t, o)
	requireAllRightsUsed(t, servers.Addrs()...)
}

func TestConformance_OnOneServer(t *testing.T) {
	for _, shards := range testkit.Of(nil, []int{1, 16}) {
		t.Run(fmt.Sprint(shards, " shards"), func(t *testing.T) { runSuiteOnServer(t, shards) })
	}
}

// runSuiteOnServer runs the suite on one real server, with the rights that the documentation names and no others.
func runSuiteOnServer(t *testing.T, shards int) {
	t.Parallel()
	server := redistest.Start(t)
	createUser(t, server.Addr())
	url := strings.Replace(server.URL(), "://", "://ringback:secret@", 1)
	o := Options{URL: url, Shards: shards, Logger: quiet}
	runSuite(t, o, func(t *testing.T) {
		require.NoError(t, client(t, server.Addr()).FlushAll(t.Context()).Err())
	})
	requireStepBackDetected(t, o)
	requireAllRightsUsed(t, server.Addr())
}

// runSuite runs the suite of storetest, and checks the keys of every script. empty removes all data.
func runSuite(t *testing.T, o Options, empty func(t *testing.T)) {
	storetest.Run(t, func(t *testing.T) storetest.Engine {
		empty(t)
		s := open(t, o)
		watchKeys(t, s)
		return storetest.Engine{
			Store: s, Defaults: policy.Builtin(),
			Recheck: func(t *testing.T, shard int) map[store.RepairKind]int {
				if strings.Contains(t.Name(), "/Random") { // random calls leave the most various data
					require.Empty(t, auditShard(t, s, shard, false))
				}
				return repairAll(t, s, shard)
			},
			Reopen: func() store.Store {
				require.NoError(t, s.Close())
				s = open(t, o)
				watchKeys(t, s)
				return s
			},
		}
	})
}
