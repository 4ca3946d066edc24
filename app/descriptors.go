package app

import (
	"log/slog"
	"net/http"

	"github.com/ringback/ringback/api"
	"github.com/ringback/ringback/pool"
)

const (
	// mostConnections bounds the API's connections however many descriptors there are: an idle one costs about 20 KB.
	mostConnections = 4096
	// leastConnections is how many there may be however few descriptors there are.
	leastConnections = 16
	// storeDescriptors are for the store, the log and the runtime.
	storeDescriptors = 64
)

// A descriptorPlan shares out the descriptors of the process, so that connections to the API take none from deliveries
// and the store.
type descriptorPlan struct {
	limit      int // of the process; 0: not known
	api        int // connections to the API
	deliveries int // attempts in flight
	idle       int // connections to receivers that are kept
}

// planDescriptors gives the API a quarter, and three quarters where nothing is delivered. Deliveries get the rest, a third of
// which may be connections that are kept for later attempts.
func planDescriptors(limit int, delivers bool) descriptorPlan {
	p := descriptorPlan{limit: limit, api: mostConnections, deliveries: pool.DefaultWorkers, idle: maxIdleConns}
	if limit <= 0 {
		return p
	}
	share := limit / 4
	if !delivers {
		share = limit / 4 * 3
	}
	p.api = max(min(share, mostConnections), leastConnections)
	p.deliveries = max(limit-p.api-p.api/8-storeDescriptors, 0)
	p.idle = max(min(p.deliveries/3, maxIdleConns), 1)
	return p
}

// maxIdleConns is how many connections to receivers are kept where there are descriptors enough.
const maxIdleConns = 1024

// log says what came of it, and warns where attempts would run out of descriptors before workers.
func (p descriptorPlan) log(log *slog.Logger, delivers bool) {
	if p.limit <= 0 {
		log.Info("file descriptor limit is unknown", "api_connections", p.api)
		return
	}
	log.Info("file descriptors", "limit", p.limit, "api_connections", p.api)
	if delivers && p.deliveries < pool.DefaultWorkers {
		log.Warn("the file descriptor limit is too low for all workers: raise it (ulimit -n, LimitNOFILE)",
			"limit", p.limit, "for_deliveries", p.deliveries, "workers", pool.DefaultWorkers,
			"needed", 2*pool.DefaultWorkers)
	}
}

// BoundConnections keeps a server's connections to about bound, as the API's are: see api.BoundConnections.
func BoundConnections(s *http.Server, bound int, log *slog.Logger) {
	api.BoundConnections(s, bound, log)
}
