package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/transfer"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

func TestExport_NoticesChangedSettings(t *testing.T) {
	for name, change := range map[string]func(s store.Store){
		"topic":    func(s store.Store) { putTopic(t, s, "default", "orders", policy.Topic{Paused: true}) },
		"lane":     func(s store.Store) { putLane(t, s, queues[0], policy.Lane{Paused: true}) },
		"schedule": func(s store.Store) { put(t, s, store.KindSchedule, "default", "daily", `{}`) },
	} {
		for _, s := range []store.Store{model(3), openSQLite(t)} {
			insert(t, s, newJob("a", queues[0]))
			putLane(t, s, queues[0], policy.Lane{LaneConcurrency: 2})
			_, err := transfer.Export(t.Context(), io.Discard, options(&changing{s, func() { change(s) }}))
			require.ErrorIs(t, err, transfer.ErrChanged, name)
			_, err = transfer.Export(t.Context(), io.Discard, options(s))
			require.NoError(t, err, name)
		}
	}
}

// damaged is a store in which some jobs cannot be read.
type damaged struct {
	store.Store
	ids []string // nil: all
}

var errDamaged = errors.New("history not readable")

func (s damaged) Shards() []store.Shard {
	return storetest.WrapShards(s.Store, func(_ int, next store.Shard) store.Shard { return damagedShard{next, s.ids} })
}

type damagedShard struct {
	store.Shard
	ids []string
}

func (s damagedShard) GetRecords(ctx context.Context, refs []job.Ref) ([]store.Record, error) {
	for _, ref := range refs {
		if s.ids == nil || slices.Contains(s.ids, ref.ID) {
			return nil, errDamaged
		}
	}
	return s.Shard.GetRecords(ctx, refs)
}

func TestExport_LeavesOutWhatCannotBeRead(t *testing.T) {
	s := many(t, 90)
	// one of them is of an ordered queue
	from := options(damaged{s, []string{"job-00000", "job-00001", "job-00002", "job-00089"}})
	var file bytes.Buffer
	ledger, err := transfer.Export(t.Context(), &file, from)
	unreadable, ok := errors.AsType[*transfer.UnreadableError](err)
	require.True(t, ok, "%v", err)
	require.EqualValues(t, 4, unreadable.Jobs)
	require.EqualValues(t, 86, ledger.Jobs())
	require.EqualValues(t, 86, importFile(t, file.Bytes(), options(model(1))).Created)

	_, err = transfer.Export(t.Context(), io.Discard, options(damaged{s, nil}))
	require.ErrorIs(t, err, errDamaged, "if nothing can be read, the fault is another")
}
