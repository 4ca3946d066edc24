package shard

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
)

func TestCache_DropsUnusedQueues(t *testing.T) {
	c := &New(nil, nil, "rb:0", 0).cache
	lanes := make([]job.Queue, 4)
	for i := range lanes {
		lanes[i] = job.Queue{Namespace: "default", Topic: "t", Lane: fmt.Sprint(i)}
		c.add(lanes[i], fmt.Sprint(i+1))
	}
	pass := func() { c.rotatedAt = time.Now().Add(-generationAge) }
	pass()
	found, missing := c.lookup(lanes[:2]) // begins a generation
	require.Empty(t, missing)
	require.Same(t, found[0].TopicKeys, found[1].TopicKeys)
	found, missing = c.lookup(lanes[:2])
	require.Empty(t, missing)
	require.Len(t, c.newest.byName, 2, "what is used is moved")
	require.Same(t, found[0].TopicKeys, c.add(job.Queue{Namespace: "default", Topic: "t", Lane: "new"}, "9").TopicKeys)
	pass()
	_, missing = c.lookup(lanes[:1])
	require.Empty(t, missing)
	_, missing = c.lookup(lanes)
	require.Equal(t, lanes[2:], missing)
}
