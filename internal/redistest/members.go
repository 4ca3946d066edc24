package redistest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// slots is the number of slots of a cluster.
const slots = 16384

// member is a line of a node's CLUSTER NODES.
type member struct {
	id     string
	addr   string
	master string // a replica's: the id of its master
	epoch  int    // of its claim to its slots: the greatest is the latest
	slots  [][2]int
}

// serves reports whether the member serves a slot.
func (m member) serves(slot int) bool {
	for _, r := range m.slots {
		if r[0] <= slot && slot <= r[1] {
			return true
		}
	}
	return false
}

// members returns the cluster as a node sees it.
func (s *Server) members() ([]member, error) {
	var all []member
	err := s.ask(func(ctx context.Context, c *redis.Client) error {
		text, err := c.ClusterNodes(ctx).Result()
		if err != nil {
			return fmt.Errorf("ask %s for the nodes of its cluster: %w", s.Addr(), err)
		}
		for line := range strings.Lines(text) {
			m, err := parseMember(line)
			if err != nil {
				return fmt.Errorf("parse the line of %s %q: %w", s.Addr(), line, err)
			}
			all = append(all, m)
		}
		return nil
	})
	return all, err
}

// parseMember reads a line of CLUSTER NODES:
//
//	id host:port@bus[,hostname] flags master|- ping pong epoch link [slot|first-last|[slot->-id]|[slot-<-id] …]
func parseMember(line string) (member, error) {
	f := strings.Fields(line)
	if len(f) < 8 {
		return member{}, errors.New("it has too few fields")
	}
	m := member{id: f[0]}
	m.addr, _, _ = strings.Cut(f[1], "@")
	if f[3] != "-" {
		m.master = f[3]
	}
	var err error
	if m.epoch, err = strconv.Atoi(f[6]); err != nil {
		return member{}, fmt.Errorf("read its epoch: %w", err)
	}
	for _, s := range f[8:] {
		if strings.HasPrefix(s, "[") {
			continue // a moving slot belongs to its old master
		}
		first, last, isRange := strings.Cut(s, "-")
		if !isRange {
			last = first
		}
		var r [2]int
		if r[0], err = strconv.Atoi(first); err != nil {
			return member{}, fmt.Errorf("read its slots: %w", err)
		}
		if r[1], err = strconv.Atoi(last); err != nil {
			return member{}, fmt.Errorf("read its slots: %w", err)
		}
		m.slots = append(m.slots, r)
	}
	return m, nil
}

// latest returns the view of the node with the newest epoch. Others may be behind.
func (c *Cluster) latest() []member {
	c.tb.Helper()
	var latest []member
	newest := -1
	err := errors.New("no node runs")
	for _, n := range c.answering() {
		var members []member
		if members, err = n.members(); err != nil {
			continue
		}
		for _, m := range members {
			if m.epoch > newest {
				latest, newest = members, m.epoch
			}
		}
	}
	if latest == nil {
		c.tb.Fatalf("ask a cluster for its nodes: %v", err)
	}
	return latest
}
