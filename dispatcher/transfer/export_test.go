package transfer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
			_, err := transfer.Export(t.Context(), io.Discard, options(&changing{s, func() { change(s) }}), nil)
			require.ErrorIs(t, err, transfer.ErrChanged, name)
			_, err = transfer.Export(t.Context(), io.Discard, options(s), nil)
			require.NoError(t, err, name)
		}
	}
}

func TestExport_DoesNotResumeAfterChanges(t *testing.T) {
	s := many(t, 90)
	whole, _ := export(t, options(s))
	u, err := transfer.ReadUnfinished(bytes.NewReader(whole[:len(whole)*3/4]))
	require.NoError(t, err)
	require.Positive(t, u.Offset)
	insert(t, s, newJob("new", queues[2]))
	_, err = transfer.Export(t.Context(), io.Discard, options(s), u)
	require.ErrorIs(t, err, transfer.ErrChanged)
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

// firstJobs returns the ids of the first jobs of the sections of a file, but the first section.
func firstJobs(t *testing.T, file []byte) (ids []string) {
	t.Helper()
	first := false
	for text := range bytes.Lines(file) {
		var line struct {
			Job     *struct{ ID string }
			Section *struct{}
		}
		require.NoError(t, json.Unmarshal(text, &line))
		if first && line.Job != nil {
			ids = append(ids, line.Job.ID)
		}
		first = line.Section != nil
	}
	return ids
}

func TestExport_LeavesOutWhatCannotBeRead(t *testing.T) {
	s := many(t, 90)
	// one of them is of an ordered queue
	from := options(damaged{s, []string{"job-00000", "job-00001", "job-00002", "job-00089"}})
	var file bytes.Buffer
	ledger, err := transfer.Export(t.Context(), &file, from, nil)
	unreadable, ok := errors.AsType[*transfer.UnreadableError](err)
	require.True(t, ok, "%v", err)
	require.EqualValues(t, 4, unreadable.Jobs)
	require.EqualValues(t, 86, ledger.Jobs())
	require.EqualValues(t, 86, importFile(t, file.Bytes(), options(model(1))).Created)

	_, err = transfer.Export(t.Context(), io.Discard, options(damaged{s, nil}), nil)
	require.ErrorIs(t, err, errDamaged, "if nothing can be read, the fault is another")
}

// Whichever jobs cannot be read, and wherever an export was interrupted, it is resumed with the same counts.
func TestExport_CountsWhatCannotBeReadOnceIfResumed(t *testing.T) {
	s := many(t, 90) // a third of them is in an ordered queue
	whole, _ := export(t, options(s))
	between := firstJobs(t, whole) // they come between the last line of a section and the first of the next
	require.Len(t, between, 2)
	all := slices.Clone(between)
	for i := 0; i < 90; i += 7 {
		all = append(all, fmt.Sprintf("job-%05d", i))
	}
	slices.Sort(all)
	for _, unread := range [][]string{between, slices.Compact(all)} {
		from := options(damaged{s, unread})
		var file bytes.Buffer
		ledger, err := transfer.Export(t.Context(), &file, from, nil)
		require.ErrorAs(t, err, new(*transfer.UnreadableError))
		for _, kept := range sections(file.Bytes()) {
			u, err := transfer.ReadUnfinished(bytes.NewReader(kept))
			require.NoError(t, err)
			require.EqualValues(t, len(kept), u.Offset)
			resumed := bytes.NewBuffer(bytes.Clone(kept))
			again, err := transfer.Export(t.Context(), resumed, from, u)
			unreadable, ok := errors.AsType[*transfer.UnreadableError](err)
			require.True(t, ok, "%v", err)
			require.EqualValues(t, len(unread), unreadable.Jobs)
			require.Equal(t, ledger, again)
			checked, err := transfer.Check(t.Context(), resumed, options(model(1)))
			require.NoError(t, err)
			require.Equal(t, ledger, checked)
		}
	}
}

// sections returns the parts of a file that end with a section.
func sections(file []byte) (parts [][]byte) {
	end := 0
	for text := range bytes.Lines(file) {
		end += len(text)
		if bytes.HasPrefix(text, []byte(`{"section":`)) {
			parts = append(parts, file[:end])
		}
	}
	return parts
}
