package pool

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
)

func TestStartSpan_CostsNothingWithoutATracer(t *testing.T) {
	a := &attempt{shard: &shardLoop{p: new(Pool)}}
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r := job.Request{Attempt: 1, Header: nil}
		started, span := a.startSpan(ctx, &r)
		if span != nil || started != ctx || r.Header != nil {
			t.Error("it has a span")
		}
	}))
}
