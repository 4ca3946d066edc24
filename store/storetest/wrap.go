package storetest

import "github.com/ringback/ringback/store"

// WrapShards wraps each shard of s, numbered from 0. A test's store embeds a store.Store and returns the result from
// its Shards, to intercept some methods of a shard.
func WrapShards(s store.Store, wrap func(number int, next store.Shard) store.Shard) []store.Shard {
	shards := make([]store.Shard, len(s.Shards()))
	for n, next := range s.Shards() {
		shards[n] = wrap(n, next)
	}
	return shards
}
