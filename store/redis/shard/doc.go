// Package shard has what all operations on one shard share: its keys, a cache of its queues' numbers, and scripts that
// run on it.
//
// It knows how to find queues and to read jobs without their bodies, but no operation of the store's contract. A Shard
// is safe for concurrent use.
package shard
