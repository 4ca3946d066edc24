package redistest

import (
	"context"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/internal/testkit"
)

// batch is the number of keys of one MIGRATE.
const batch = 100

// A Move is a slot's migration from one master to another.
type Move struct {
	c            *Cluster
	slot         int
	from, to     *Server
	fromID, toID string
}

// MoveSlot moves a slot with its keys to another master, as resharding does.
func (c *Cluster) MoveSlot(slot int, to *Server) {
	c.tb.Helper()
	c.BeginMove(slot, to).Finish()
}

// BeginMove starts the migration of a slot without moving keys. Until Finish, its master redirects clients (ASK) for
// keys that it does not have, and answers TRYAGAIN when it has some of several.
func (c *Cluster) BeginMove(slot int, to *Server) *Move {
	c.tb.Helper()
	from, members := c.Master(slot), c.latest()
	if from == to {
		c.tb.Fatalf("move slot %d: it is there", slot)
	}
	m := &Move{c: c, slot: slot, from: from, to: to, fromID: c.id(members, from), toID: c.id(members, to)}
	m.do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", m.fromID)
	m.do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", m.toID)
	return m
}

// Carry moves up to n keys and returns their number; 0: none is left.
func (m *Move) Carry(n int) int {
	m.c.tb.Helper()
	var keys []string
	err := m.from.ask(func(ctx context.Context, client *redis.Client) (err error) {
		keys, err = client.ClusterGetKeysInSlot(ctx, m.slot, n).Result()
		return err
	})
	if err != nil {
		m.c.tb.Fatalf("list keys of slot %d: %v", m.slot, err)
	}
	if len(keys) == 0 {
		return 0
	}
	host, port, err := net.SplitHostPort(m.to.Addr())
	if err != nil {
		m.c.tb.Fatalf("read an address: %v", err)
	}
	command := []any{"MIGRATE", host, port, "", 0, testkit.MustCome.Milliseconds()}
	if p := password(m.c.args); p != "" {
		command = append(command, "AUTH", p)
	}
	command = append(command, "KEYS")
	for _, k := range keys {
		command = append(command, k)
	}
	m.do(m.from, command...)
	return len(keys)
}

// Finish moves the remaining keys and assigns the slot to its new master.
func (m *Move) Finish() {
	m.c.tb.Helper()
	for m.Carry(batch) > 0 {
		continue
	}
	m.do(m.to, "CLUSTER", "SETSLOT", m.slot, "NODE", m.toID) // first, so that the slot always has a master
	m.do(m.from, "CLUSTER", "SETSLOT", m.slot, "NODE", m.toID)
	for _, n := range m.c.Masters() {
		if n != m.to && n != m.from && n.answering() {
			m.do(n, "CLUSTER", "SETSLOT", m.slot, "NODE", m.toID)
		}
	}
}

// do sends a command to a node, or fails the test.
func (m *Move) do(n *Server, command ...any) {
	m.c.tb.Helper()
	err := n.ask(func(ctx context.Context, client *redis.Client) error { return client.Do(ctx, command...).Err() })
	if err != nil {
		m.c.tb.Fatalf("move slot %d: %v: %v", m.slot, fmt.Sprint(command[:min(3, len(command))]...), err)
	}
}
