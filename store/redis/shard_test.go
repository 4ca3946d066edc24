package redis

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store/redis/layout"
)

func TestNumbering_ForgetsQueuesThatAreNotUsed(t *testing.T) {
	s := newShard(nil, layout.NewKeys("rb:0"), 0)
	lanes := make([]job.Queue, 4)
	for i := range lanes {
		lanes[i] = job.Queue{Namespace: "default", Topic: "t", Lane: fmt.Sprint(i)}
		s.remember(lanes[i], fmt.Sprint(i+1))
	}
	pass := func() { s.rotatedAt = time.Now().Add(-cacheFor) }
	pass()
	found, missing := s.lookup(lanes[:2]) // begins a generation
	require.Empty(t, missing)
	require.Same(t, found[0].TopicKeys, found[1].TopicKeys)
	found, missing = s.lookup(lanes[:2])
	require.Empty(t, missing)
	require.Len(t, s.newest.byName, 2, "what is used is moved")
	require.Same(t, found[0].TopicKeys, s.remember(job.Queue{Namespace: "default", Topic: "t", Lane: "new"}, "9").TopicKeys)
	pass()
	_, missing = s.lookup(lanes[:1])
	require.Empty(t, missing)
	_, missing = s.lookup(lanes)
	require.Equal(t, lanes[2:], missing)
}
