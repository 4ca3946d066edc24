package store

import (
	"hash/fnv"

	"github.com/ringback/ringback/job"
)

// ShardOf returns the number of the shard that stores the jobs of a queue. It depends on the queue's name alone.
func ShardOf(shards int, q job.Queue) int { return jump(q.String(), shards) }

// ShardOfTopic returns the number of the shard that keeps the permits and the alarm of a topic.
func ShardOfTopic(shards int, namespace, topic string) int { return jump(namespace+"/"+topic, shards) }

// jump returns the bucket of a name: the jump consistent hash of Lamping and Veach (2014) over its FNV-1a. It spreads
// names evenly. When an n-th bucket is added, it moves only 1/n of them.
func jump(name string, buckets int) int {
	if buckets == 1 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	key := h.Sum64()
	bucket, next := int64(-1), int64(0)
	for next < int64(buckets) {
		bucket = next
		key = key*2862933555777941757 + 1
		next = int64(float64(bucket+1) * (float64(1<<31) / float64((key>>33)+1)))
	}
	return int(bucket)
}
