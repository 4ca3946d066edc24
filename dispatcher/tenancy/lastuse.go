package tenancy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/store"
)

// lastUseInterval is the interval at which last uses are written.
const lastUseInterval = time.Minute

// uses are the hours in which this process used a token, in Unix seconds. Zero: never.
type uses struct {
	last   atomic.Int64
	stored atomic.Int64 // the last one that is known to be stored
}

// add notes a use.
func (u *uses) add(now time.Time) {
	if hour := now.Unix() - now.Unix()%3600; u.last.Load() != hour {
		u.last.Store(hour)
	}
}

// lastUses is the value of a document of KindLastUses, which has the name of a namespace: the hour of the last use of
// each of its tokens, in Unix seconds by id.
type lastUses map[string]int64

// Run keeps quotas up to date and writes the hours in which tokens were used, at most once an hour for each token,
// until ctx ends.
func (r *Registry) Run(ctx context.Context) {
	var keeping sync.WaitGroup
	defer keeping.Wait()
	keeping.Go(func() { r.namespaces.Keep(ctx, maxAge) })
	tick := time.NewTicker(lastUseInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.writeAllLastUses(ctx)
		}
	}
}

// writeAllLastUses writes the last uses that are not stored. Those that fail are written at the next tick.
func (r *Registry) writeAllLastUses(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastUseInterval)
	defer cancel()
	used := make(map[string][]*entry)
	for _, e := range r.tokens.Loaded().Values {
		if e.uses.last.Load() > e.uses.stored.Load() {
			used[e.Namespace] = append(used[e.Namespace], e)
		}
	}
	for namespace, entries := range used {
		if err := r.writeLastUses(ctx, namespace, entries); err != nil && !errors.Is(err, store.ErrVersion) {
			r.log.Warn("writing the last uses of tokens failed, retrying", "namespace", namespace, "err", err)
			return
		}
	}
}

// writeLastUses writes the last uses of tokens of a namespace, and drops those of revoked ones.
func (r *Registry) writeLastUses(ctx context.Context, namespace string, used []*entry) error {
	docs, err := r.settings.GetDocuments(ctx, []store.DocumentKey{key(KindLastUses, namespace)})
	if err != nil {
		return fmt.Errorf("read them: %w", err)
	}
	tokens, err := r.tokens.Reload(ctx) // after the read, so that it has all tokens that were used
	if err != nil {
		return err
	}
	written, changed := make(lastUses, len(used)), false
	for id, hour := range decodeLastUses(docs[0]) {
		if find(tokens, id) != nil {
			written[id] = hour
		}
	}
	hours := make([]int64, len(used))
	for i, e := range used {
		hours[i] = e.uses.last.Load()
		if find(tokens, e.ID) != nil && hours[i] > written[e.ID] {
			written[e.ID], changed = hours[i], true
		}
	}
	if changed { // else another process has written them
		revision := cmp.Or(docs[0].Revision, store.MustNotExist)
		if _, err := r.put(ctx, key(KindLastUses, namespace), written, revision); err != nil {
			return err
		}
	}
	for i, e := range used {
		e.uses.stored.Store(hours[i])
	}
	return nil
}

// decodeLastUses returns none for a document that is not readable: it is replaced at the next use.
func decodeLastUses(doc store.Document) (hours lastUses) {
	_ = json.Unmarshal(doc.Value, &hours)
	return hours
}

// withLastUses returns tokens with their last uses: those that are stored, and those in this process.
func (r *Registry) withLastUses(ctx context.Context, entries []*entry) ([]access.Token, error) {
	stored := make(map[string]lastUses)
	var keys []store.DocumentKey
	for _, e := range entries {
		if _, ok := stored[e.Namespace]; !ok {
			stored[e.Namespace] = nil
			keys = append(keys, key(KindLastUses, e.Namespace))
		}
	}
	for part := range slices.Chunk(keys, store.MaxBatch) {
		docs, err := r.settings.GetDocuments(ctx, part)
		if err != nil {
			return nil, fmt.Errorf("read the last uses of tokens: %w", err)
		}
		for i, doc := range docs {
			stored[part[i].Name] = decodeLastUses(doc)
		}
	}
	tokens := make([]access.Token, len(entries))
	for i, e := range entries {
		tokens[i] = e.Token
		if hour := max(stored[e.Namespace][e.ID], e.uses.last.Load()); hour > 0 {
			tokens[i].LastUsedAt = time.Unix(hour, 0).UTC()
		}
	}
	return tokens, nil
}
