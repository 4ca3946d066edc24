package redis

import (
	"context"
	"fmt"
	"iter"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// An Auditor audits a Redis store that other processes may use.
type Auditor struct{ *Store }

var _ store.Auditor = Auditor{}

// OpenAuditor opens existing data for an audit. It lays out nothing.
func OpenAuditor(ctx context.Context, o Options) (store.Auditor, error) {
	o.exists = true
	s, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return Auditor{s}, nil
}

// checkExists returns an error if nothing is laid out under the prefix.
func (s *Store) checkExists(ctx context.Context, prefix string) error {
	n, err := s.Client.Exists(ctx, layout.MetaKey(prefix)).Result()
	if err != nil {
		return connect.MapError(ctx, err)
	}
	if n == 0 {
		return fmt.Errorf("redis: there are no data under the prefix %s", prefix)
	}
	return nil
}

// Shards implements store.Auditor.
func (a Auditor) Shards() int { return len(a.shards) }

// Audit implements store.Auditor.
func (a Auditor) Audit(ctx context.Context, shard int, repair bool) iter.Seq2[store.AuditPage, error] {
	return a.shards[shard].Audit(ctx, repair)
}

// Unfinished implements store.Auditor.
func (a Auditor) Unfinished(ctx context.Context, refs []job.Ref) ([]bool, error) {
	found := make([]bool, len(refs))
	for _, sh := range a.shards {
		states, err := sh.Known(ctx, refs)
		if err != nil {
			return nil, err
		}
		for i, known := range states {
			found[i] = found[i] || known.Unfinished()
		}
	}
	return found, nil
}
