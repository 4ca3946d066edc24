package redistest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/redis/go-redis/v9"
)

// AwaitOK waits until the cluster is healthy: all nodes that run and are not paused report it, agree on the masters of
// all slots, which run, and on the replicas, which are in sync if they run.
func (c *Cluster) AwaitOK() {
	c.tb.Helper()
	c.await(0)
}

// await is AwaitOK with a minimum of replicas in sync.
func (c *Cluster) await(replicas int) {
	c.tb.Helper()
	await(c.tb, "wait for a cluster to work", func() error { return c.complaint(replicas) })
}

// complaint returns the first unmet condition of AwaitOK.
func (c *Cluster) complaint(replicas int) error {
	nodes := c.answering()
	if len(nodes) == 0 {
		return errors.New("no node runs")
	}
	runs := make(map[string]bool)
	for _, n := range nodes {
		runs[n.Addr()] = true
	}
	var roles map[string]string
	// replicas by master: as reported by masters, and by replicas
	followed, follow := map[string]int{}, map[string]int{}
	for _, n := range nodes {
		if err := n.contented(); err != nil {
			return err
		}
		members, err := n.members()
		if err != nil {
			return err
		}
		reported, err := rolesOf(members, runs)
		if err != nil {
			return fmt.Errorf("according to %s: %w", n.Addr(), err)
		}
		if roles == nil {
			roles = reported
		}
		if !maps.Equal(roles, reported) {
			return fmt.Errorf("%s and %s differ over who serves which slot, or whose replica is who",
				nodes[0].Addr(), n.Addr())
		}
		r, err := n.replication()
		switch {
		case err != nil:
			return err
		case r.master:
			followed[n.Addr()] = r.replicas
			continue
		case !r.linked || !runs[r.of]:
			return fmt.Errorf("%s is not in sync with its master", n.Addr())
		}
		replicas--
		follow[r.of]++
	}
	for master, n := range follow {
		if followed[master] < n {
			return fmt.Errorf("%s feeds %d of its %d replicas", master, followed[master], n)
		}
	}
	if replicas > 0 {
		return fmt.Errorf("%d replicas are missing", replicas)
	}
	return nil
}

// contented returns a complaint if a node reports an unhealthy cluster.
func (s *Server) contented() error {
	return s.ask(func(ctx context.Context, c *redis.Client) error {
		info, err := c.ClusterInfo(ctx).Result()
		if err != nil {
			return fmt.Errorf("ask %s for the state of its cluster: %w", s.Addr(), err)
		}
		for _, wanted := range []string{"cluster_state:ok", fmt.Sprint("cluster_slots_ok:", slots)} {
			if !strings.Contains(info, wanted+"\r\n") {
				return fmt.Errorf("%s does not say %s", s.Addr(), wanted)
			}
		}
		return nil
	})
}

// rolesOf returns the roles of running nodes by address: their slots, or their master. It is an error when a node that
// does not run serves slots.
func rolesOf(members []member, runs map[string]bool) (map[string]string, error) {
	roles := make(map[string]string)
	for _, m := range members {
		switch {
		case runs[m.addr]:
			roles[m.addr] = fmt.Sprint(m.master, m.slots)
		case len(m.slots) > 0:
			return nil, fmt.Errorf("%s serves slots and does not run", m.addr)
		}
	}
	return roles, nil
}
