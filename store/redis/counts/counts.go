// Package counts implements store.Counts on Redis. It reads counters and the sizes of sets, and no jobs but the heads of ready
// lists.
package counts

import "github.com/ringback/ringback/store/redis/shard"

// Counts counts the jobs of one shard. It is safe for concurrent use.
type Counts struct{ *shard.Shard }
