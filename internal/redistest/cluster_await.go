package redistest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/redis/go-redis/v9"
)

// AwaitOK waits until the cluster works again: all nodes that run and are not paused say so, agree on who serves which
// slot, which are such nodes alone, and on whose replica is who, and the replicas among them are in sync.
func (c *Cluster) AwaitOK() {
	c.tb.Helper()
	c.await(0)
}

// await is AwaitOK, with at least so many replicas in sync.
func (c *Cluster) await(replicas int) {
	c.tb.Helper()
	await(c.tb, "wait for a cluster to work", func() error { return c.complaint(replicas) })
}

// complaint is the first thing that AwaitOK would have otherwise.
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
	followed, follow := map[string]int{}, map[string]int{} // by masters: what they say, and what the replicas say
	for _, n := range nodes {
		if err := n.contented(); err != nil {
			return err
		}
		members, err := n.members()
		if err != nil {
			return err
		}
		said, err := rolesOf(members, runs)
		if err != nil {
			return fmt.Errorf("as %s says: %w", n.Addr(), err)
		}
		if roles == nil {
			roles = said
		}
		if !maps.Equal(roles, said) {
			return fmt.Errorf("%s and %s differ over who serves which slot, or whose replica is who", nodes[0].Addr(), n.Addr())
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

// contented complains for a node that finds the cluster wanting.
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

// rolesOf tells by address what those that run do: which slots they serve, or whose replica they are. It is an error
// when another one serves slots.
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
