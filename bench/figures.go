package main

import "context"

// A figure is one thing that is measured. What it finds it adds to the bench's current result.
type figure struct {
	name    string
	title   string
	measure func(ctx context.Context, b *bench) error
}

// figures are all, in the order in which they are measured: those that fill a store with a million jobs come last, and
// share it.
var figures = []figure{
	{"throughput-redis", "deliveries a second, Redis, due at once", throughputRedis},
	{"throughput-sqlite", "deliveries a second, SQLite, due at once", throughputSQLite},
	{"lanes", "deliveries a second over 1,000 lanes beside one", lanes},
	{"processes", "deliveries a second of four processes on one Redis beside one", processes},
	{"concurrency", "deliveries a second by concurrency", concurrency},
	{"lateness", "lateness of arrivals at 500 jobs a second", lateness},
	{"post", "registrations a second, one a request", post},
	{"batch", "registrations a second, in batches", batches},
	{"idle", "processor time and calls to Redis while jobs only wait", idle},
	{"memory", "Redis memory of a waiting job", memoryOfJobs},
	{"rss", "memory of a process while jobs wait", residentMemory},
	{"beside", "deliveries a second while other jobs wait", beside},
	{"start", "start on waiting jobs, and size of the program", starts},
}
