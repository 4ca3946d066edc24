// Package redis is the engine that keeps jobs in Redis 6.2 or later, so that many processes can share them.
//
// # Guarantees
//
// Each change is one Lua script over keys of one hash slot. It takes effect whole or not at all, on a single server,
// with Sentinel and on a cluster. Each such call keeps its reply under its token for store.TokenTTL, so that a repeat
// returns what the first call returned. The clock is Redis's.
//
// Durability is Redis's setting: with appendfsync everysec a power cut can lose the last second, and a replica that
// takes over lacks what it had not received. With Options.Wait replies to API writes wait for more, and say what was
// reached. Open warns when nothing persists, and refuses a server that would evict jobs. While Redis's memory is full,
// new jobs are refused and existing ones are delivered.
//
// # Structure
//
// Each interface of store.Shard is implemented by a package: queue, jobs, keeper, repair, counts, settings. They share
// Package shard; packages layout and script define the stored forms, connect the connections. DESIGN.md describes the
// data.
//
// A Store is safe for concurrent use. It starts no goroutine that outlives a call.
package redis
