package main

import "context"

// A figure is a measurement. It adds its rows to the bench's current result.
type figure struct {
	name    string
	title   string
	measure func(ctx context.Context, b *bench) error
	// ownProcesses is set if each run of a contestant starts new processes.
	ownProcesses bool
}

// figures are all figures in the order of their measurement. The last ones share a store with a million jobs.
var figures = []figure{
	{"throughput-redis", "deliveries a second, Redis, due at once", throughputRedis, true},
	{"throughput-sqlite", "deliveries a second, SQLite, due at once", throughputSQLite, true},
	{"default-policy", "deliveries a second to one lane under the default policy", defaultPolicy, true},
	{"https", "deliveries a second over https", overHTTPS, true},
	{"lanes", "deliveries a second over 1,000 lanes beside one", lanes, true},
	{"processes", "deliveries a second of four processes on one Redis beside one", processes, true},
	{"concurrency", "deliveries a second by concurrency", concurrency, false},
	{"lateness", "lateness of arrivals at 500 jobs a second", lateness, true},
	{"post", "registrations a second, one a request", post, true},
	{"batch", "registrations a second, in batches", batches, true},
	{"pull", "jobs pulled a second beside jobs sent", pull, true},
	{"wait", "time until the requests that wait for a job are answered", wait, true},
	{"handlers", "jobs handled a second by functions of a Go program", handlers, false},
	{"idle", "processor time and calls to Redis while jobs only wait", idle, false},
	{"schedules", "processor time and calls to Redis with schedules and without", schedules, false},
	{"memory", "Redis memory of a waiting job", memoryOfJobs, false},
	{"rss", "memory of a process while jobs wait", residentMemory, false},
	{"beside", "deliveries a second while other jobs wait", beside, false},
	{"start", "start on waiting jobs, and size of the program", starts, false},
}
