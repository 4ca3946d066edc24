package app

import (
	"log/slog"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/notify/conn"
	"github.com/ringback/ringback/pool"
)

const (
	// minAPIConns is allowed whatever the descriptor limit.
	minAPIConns = 16
	// storeDescriptors are reserved for each store, and for the log and the runtime with the first.
	storeDescriptors = 64
)

// descriptorPlan divides the process's file descriptors, so that API connections cannot starve deliveries and the
// store.
type descriptorPlan struct {
	limit      int // of the process; 0: unknown
	api        int // connections to the API
	waiting    int // of these, requests that wait for the end of a job or for jobs to lease
	deliveries int // attempts in flight
	idle       int // idle connections to receivers, of each of two kinds
}

// planDescriptors gives the API a quarter, or three quarters in a process without deliveries: an idle connection costs
// about 20 KB. Deliveries get the rest, up to half of it for idle connections: a quarter for those of each kind.
func planDescriptors(limit, stores int, delivers bool) descriptorPlan {
	p := descriptorPlan{
		limit: limit, api: capacity.Requests.Whole, waiting: capacity.Waits.Whole,
		deliveries: pool.DefaultWorkers, idle: conn.MaxIdle,
	}
	if limit <= 0 {
		return p
	}
	share := limit / 4
	if !delivers {
		share = limit / 4 * 3
	}
	p.api = max(min(share, capacity.Requests.Whole), minAPIConns)
	p.waiting = min(p.api/2, capacity.Waits.Whole)
	p.deliveries = max(limit-limits.MaxConnections(p.api)-stores*storeDescriptors, 0)
	p.idle = max(min(p.deliveries/4, conn.MaxIdle), 1)
	return p
}

// log logs the plan, and warns when deliveries would run out of descriptors before workers.
func (p descriptorPlan) log(log *slog.Logger, delivers bool) {
	if p.limit <= 0 {
		log.Info("file descriptor limit is unknown", "api_connections", p.api)
		return
	}
	log.Info("file descriptors", "limit", p.limit, "api_connections", p.api)
	if delivers && p.deliveries < pool.DefaultWorkers {
		log.Warn("file descriptor limit is too low for all workers; raise it (ulimit -n, LimitNOFILE)",
			"limit", p.limit, "for_deliveries", p.deliveries, "workers", pool.DefaultWorkers,
			"needed", 2*pool.DefaultWorkers)
	}
}
