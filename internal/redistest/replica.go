package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// replication is a server's INFO replication.
type replication struct {
	master   bool
	linked   bool   // of a replica: it is in sync with its master
	of       string // of a replica: the address of its master
	replicas int    // of a master: replicas in sync
}

// acknowledged reports whether a replica has acknowledged its master since they are in sync. Before, the master sends
// it no writes, and its lag is the time since 1970.
func acknowledged(replica string) bool {
	_, lag, _ := strings.Cut(replica, "lag=")
	seconds, err := strconv.ParseInt(lag, 10, 64)
	return err == nil && seconds < 1_000_000
}

// replication reads a server's INFO replication.
func (s *Server) replication() (replication, error) {
	var r replication
	err := s.ask(func(ctx context.Context, c *redis.Client) error {
		info, err := c.Info(ctx, "replication").Result()
		if err != nil {
			return fmt.Errorf("ask %s for its role: %w", s.Addr(), err)
		}
		host, port := "", ""
		for line := range strings.SplitSeq(info, "\r\n") {
			name, value, _ := strings.Cut(line, ":")
			switch {
			case name == "role":
				r.master = value == "master"
			case name == "master_link_status":
				r.linked = value == "up"
			case name == "master_host":
				host = value
			case name == "master_port":
				port = value
			case strings.HasPrefix(name, "slave") && strings.Contains(value, "state=online") && acknowledged(value):
				r.replicas++
			}
		}
		r.of = host + ":" + port
		return nil
	})
	return r, err
}
