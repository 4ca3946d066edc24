package main

import "context"

// A figure is a measurement. It adds its rows to the bench's current result.
type figure struct {
	name    string
	title   string
	measure func(ctx context.Context, b *bench) error
	// ownProcesses is set if each run of a contestant starts new processes.
	ownProcesses bool
	// onDemand is set if it is measured only where -only names it.
	onDemand bool
}

// figures are all figures in the order of their measurement. The last ones share a store with a million jobs.
var figures = []figure{
	{"throughput-redis", "deliveries a second, Redis, due at once", throughputRedis, true, false},
	{"throughput-sqlite", "deliveries a second, SQLite, due at once", throughputSQLite, true, false},
	{"default-policy", "deliveries a second to one lane under the default policy", defaultPolicy, true, false},
	{"https", "deliveries a second over https", overHTTPS, true, false},
	{"lanes", "deliveries a second over 1,000 lanes beside one", lanes, true, false},
	{"many-lanes", "deliveries a second over 10,000 lanes beside one", tenThousandLanes, true, false},
	{"processes", "deliveries a second of four processes on one Redis beside one", processes, true, false},
	{"concurrency", "deliveries a second by concurrency", concurrency, false, false},
	{"lateness", "lateness of arrivals at 500 jobs a second", lateness, true, false},
	{"post", "registrations a second, one a request", post, true, false},
	{"batch", "registrations a second, in batches", batches, true, false},
	{"events", "deliveries and registrations of events beside those of jobs", events, true, false},
	{"pull", "jobs pulled a second beside jobs sent", pull, true, false},
	{"wait", "time until the requests that wait for a job are answered", wait, true, false},
	{"handlers", "jobs handled a second by functions of a Go program", handlers, false, false},
	{"idle", "processor time and calls to Redis while jobs only wait", idle, false, false},
	{"schedules", "processor time and calls to Redis with schedules and without", schedules, false, false},
	{"memory", "Redis memory of a waiting job", memoryOfJobs, false, false},
	{"rss", "memory of a process while jobs wait", residentMemory, false, false},
	{"beside", "deliveries a second while other jobs wait", beside, false, false},
	{"page", "lists of jobs, and lateness of new ones, while others wait", pages, false, false},
	{"start", "start on waiting jobs, and size of the program", starts, false, false},
	{"soak-redis", "many lanes on Redis for half an hour, a tenth of which fails", soakOn(redisEngine), false, true},
	{"soak-sqlite", "the same on SQLite", soakOn(sqliteEngine), false, true},
}
