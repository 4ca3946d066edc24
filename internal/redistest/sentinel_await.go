package redistest

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// AwaitMaster waits until all running sentinels name the same master, other than not (nil: any), and it has that role,
// and returns it.
func (s *Sentinel) AwaitMaster(not *Server) *Server {
	s.tb.Helper()
	var master *Server
	await(s.tb, "wait for sentinels to name a master", func() (err error) {
		master, err = s.agreed()
		if err == nil && master == not {
			err = fmt.Errorf("it is still %s", not.Addr())
		}
		return err
	})
	return master
}

// AwaitOK waits until all running sentinels name the same master, which has that role, all other servers that run and
// are not paused are its replicas and in sync, and the sentinels know that and each other: they could replace the
// master at once.
func (s *Sentinel) AwaitOK() {
	s.tb.Helper()
	await(s.tb, "wait for replicas to follow", func() error {
		master, err := s.agreed()
		if err != nil {
			return err
		}
		following := 0
		for _, server := range s.servers {
			if server == master || !server.answering() {
				continue
			}
			if r, err := server.replication(); err != nil {
				return err
			} else if r.master || !r.linked || r.of != master.Addr() {
				return fmt.Errorf("%s is not in sync with %s", server.Addr(), master.Addr())
			}
			following++
		}
		if r, err := master.replication(); err != nil {
			return err
		} else if r.replicas < following {
			return fmt.Errorf("%s feeds %d of its %d replicas", master.Addr(), r.replicas, following)
		}
		for _, sentinel := range s.sentinels {
			if !sentinel.answering() {
				continue
			}
			if err := s.informed(sentinel, master); err != nil {
				return err
			}
		}
		return nil
	})
}

// agreed returns the master that all running sentinels name, if it runs and has that role.
func (s *Sentinel) agreed() (*Server, error) {
	var master *Server
	for _, sentinel := range s.sentinels {
		if !sentinel.answering() {
			continue
		}
		named, err := s.named(sentinel)
		switch {
		case err != nil:
			return nil, err
		case master != nil && named != master:
			return nil, fmt.Errorf("sentinels name %s and %s", master.Addr(), named.Addr())
		}
		master = named
	}
	switch {
	case master == nil:
		return nil, errors.New("no sentinel runs")
	case !master.answering():
		return nil, fmt.Errorf("%s is named and does not run", master.Addr())
	}
	r, err := master.replication()
	if err == nil && !r.master {
		err = fmt.Errorf("%s is named and has the role of a replica", master.Addr())
	}
	return master, err
}

// informed returns a complaint if a sentinel does not know all running sentinels, the master and its running replicas,
// or reports one of them as unhealthy.
func (s *Sentinel) informed(sentinel, master *Server) error {
	return sentinel.ask(func(ctx context.Context, c *redis.Client) error {
		for _, known := range []struct {
			question []any
			flags    string
			all      []*Server
			but      *Server
		}{
			{question: []any{"SENTINEL", "MASTERS"}, flags: "master", all: []*Server{master}},
			{question: []any{"SENTINEL", "REPLICAS", watched}, flags: "slave", all: s.servers, but: master},
			{question: []any{"SENTINEL", "SENTINELS", watched}, flags: "sentinel", all: s.sentinels, but: sentinel},
		} {
			answer, err := c.Do(ctx, known.question...).Slice()
			if err != nil {
				return fmt.Errorf("ask sentinel %s: %w", sentinel.Addr(), err)
			}
			found := make(map[string]bool) // those that are healthy
			for _, one := range answer {
				linked := known.flags != "slave" || field(one, "master-link-status") == "ok"
				found[field(one, "ip")+":"+field(one, "port")] = linked && field(one, "flags") == known.flags
			}
			for _, server := range known.all {
				if server != known.but && server.answering() && !found[server.Addr()] {
					return fmt.Errorf("sentinel %s does not know %s as a %s without fault", sentinel.Addr(),
						server.Addr(), known.flags)
				}
			}
		}
		return nil
	})
}

// field returns a value from a list of names and values.
func field(list any, name string) string {
	pairs, _ := list.([]any)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == name {
			return fmt.Sprint(pairs[i+1])
		}
	}
	return ""
}
