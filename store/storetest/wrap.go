package storetest

import "github.com/ringback/ringback/store"

// WrapShards wraps each shard of s, with its number from 0. A test's store embeds a store.Store and returns them from its
// Shards, so that it intercepts some methods of a shard and passes the others on.
func WrapShards(s store.Store, wrap func(number int, next store.Shard) store.Shard) []store.Shard {
	shards := make([]store.Shard, len(s.Shards()))
	for n, next := range s.Shards() {
		shards[n] = wrap(n, next)
	}
	return shards
}
