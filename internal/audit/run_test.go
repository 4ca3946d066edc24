package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// A fake is a store with one shard whose looks find what a test says.
type fake struct {
	store.Auditor
	looks    [][]store.Fault // of one look after the other; the last one is repeated
	repairs  int
	repaired []store.Fault // what looks find after a repair
	pause    time.Duration
	docs     []store.Document
	jobs     []bool // Unfinished of one call after the other; the last one is repeated
}

func (f *fake) Shards() int { return 1 }

func (f *fake) Audit(_ context.Context, _ int, repair bool) iter.Seq2[store.AuditPage, error] {
	return func(yield func(store.AuditPage, error) bool) {
		faults := f.looks[0]
		if len(f.looks) > 1 {
			f.looks = f.looks[1:]
		}
		if repair {
			f.repairs++
			f.looks = [][]store.Fault{f.repaired}
		}
		for i := range faults {
			if !yield(store.AuditPage{Faults: faults[i : i+
				1], Ledger: store.Ledger{Records: store.States{Waiting: 1}}, Pause: f.pause}, nil) {
				return
			}
		}
	}
}

func (f *fake) ListDocuments(
	_ context.Context, after store.DocumentKey, _ int,
) ([]store.Document, int64, error) {
	if after.Name != "" {
		return nil, 0, errors.New("there is one page")
	}
	return f.docs, 0, nil
}

func (f *fake) Unfinished(_ context.Context, refs []job.Ref) ([]bool, error) {
	found := make([]bool, len(refs))
	for i := range refs {
		found[i] = f.jobs[0]
	}
	if len(f.jobs) > 1 {
		f.jobs = f.jobs[1:]
	}
	return found, nil
}

var (
	lost    = store.Fault{Kind: store.RepairUnplaced, Where: "default/t/l", ID: "lost", Detail: "in no place"}
	moved   = store.Fault{Kind: store.RepairMisplaced, Where: "default/t/l", ID: "moved", Detail: "in due and ready"}
	counter = store.Fault{Kind: store.RepairCounter, Where: "default/t", Detail: "registered is 3, counted 4"}
	unread  = store.Fault{Kind: store.FaultUnreadable, ID: "unread", Detail: "it cannot be read"}
)

// with returns a fault with another detail, or as repaired.
func with(f store.Fault, detail string, repaired bool) store.Fault {
	if detail != "" {
		f.Detail = detail
	}
	f.Repaired = repaired
	return f
}

func TestRun_ReportsWhatTwoLooksHaveFound(t *testing.T) {
	later := with(counter, "registered is 7, counted 8", false)
	f := &fake{looks: [][]store.Fault{{lost, moved, counter}, {later, lost, unread}}}
	r, err := Run(t.Context(), f, false)
	require.NoError(t, err)
	require.Equal(t, []store.Fault{later, lost}, r.Faults, "as the second look has found them")
	require.Equal(t, 2, r.Left())
	require.EqualValues(t, 3, r.Ledger.Records.Waiting, "of the last look")

	r, err = Run(t.Context(), &fake{looks: [][]store.Fault{nil, {lost}}}, true)
	require.NoError(t, err)
	require.Empty(t, r.Faults, "one look is enough if it finds none")
}

func TestRun_RepairsAndLooksAgain(t *testing.T) {
	f := &fake{looks: [][]store.Fault{{lost, unread}, {lost, unread}}, repaired: []store.Fault{unread}}
	r, err := Run(t.Context(), f, true)
	require.NoError(t, err)
	require.Equal(t, []store.Fault{with(lost, "", true), unread}, r.Faults)
	require.Equal(t, 1, r.Left())
	require.Equal(t, 1, f.repairs)

	f = &fake{looks: [][]store.Fault{{lost}, {moved}}}
	r, err = Run(t.Context(), f, true)
	require.NoError(t, err)
	require.Empty(t, r.Faults)
	require.Zero(t, f.repairs, "nothing was found twice")
}

func TestRun_WaitsAsStoresAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := with(lost, "", false)
		slow.After = 10 * time.Second
		began := time.Now()
		_, err := Run(t.Context(), &fake{looks: [][]store.Fault{{slow, moved}}, pause: time.Second}, false)
		require.NoError(t, err)
		require.Equal(t, 12*time.Second, time.Since(began), "10s from the first look, of which each takes 2s")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = Run(ctx, &fake{looks: [][]store.Fault{{slow}}, pause: time.Hour}, false)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestRun_BoundsTheFaults(t *testing.T) {
	var many []store.Fault
	for i := range MaxFaults + 5 {
		f := lost
		f.ID = fmt.Sprint("job-", i)
		many = append(many, f)
	}
	r, err := Run(t.Context(), &fake{looks: [][]store.Fault{many}}, false)
	require.NoError(t, err)
	require.Len(t, r.Faults, MaxFaults)
	require.True(t, r.More)
	require.Contains(t, text(t, &Named{Report: r}), "There are more faults than the 10000 that are listed.")
}

func TestRun_FindsSchedulesWithoutAnInternalJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		doc := func(name, value string) store.Document {
			return store.Document{
				Key:      store.DocumentKey{Kind: store.KindSchedule, Namespace: "default", Name: name},
				Revision: 1, Value: []byte(value),
			}
		}
		docs := []store.Document{doc("daily", `{"JobID":"rb:s:daily:1"}`)}
		lostJob := store.Fault{
			Kind: store.FaultSchedule, Where: "schedule default/daily", ID: "rb:s:daily:1",
			Detail: "its internal job is gone, so that it makes no tick", After: scheduleWait,
		}
		for _, c := range []struct {
			jobs []bool
			want []store.Fault
		}{
			{[]bool{true}, nil},
			{[]bool{false, true}, nil},
			{[]bool{false}, []store.Fault{lostJob}},
		} {
			r, err := Run(t.Context(), &fake{looks: [][]store.Fault{nil}, docs: docs, jobs: c.jobs}, false)
			require.NoError(t, err)
			require.Equal(t, c.want, r.Faults)
		}
		r, err := Run(t.Context(), &fake{looks: [][]store.Fault{nil}, docs: []store.Document{doc("bad", "{")}}, true)
		require.NoError(t, err)
		require.Equal(t, store.FaultUnreadable, r.Faults[0].Kind)
	})
}

func TestAdvice_KnowsEveryKind(t *testing.T) {
	kinds := append(store.RepairKinds(), store.FaultUnreadable, store.FaultBody, store.FaultNameless,
		store.FaultRelay, store.FaultSchedule)
	for _, kind := range kinds {
		if kind == store.RepairEmptied { // no audit finds it
			continue
		}
		means, todo := Advice(kind)
		require.NotEmpty(t, means, kind)
		require.NotEmpty(t, todo, kind)
	}
	require.Len(t, advices, len(kinds)-1)
}

// text returns a report as text.
func text(t *testing.T, n *Named) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, n.WriteText(&b))
	return b.String()
}

func TestNamed_WritesTheLedgerAndTheFaults(t *testing.T) {
	states := store.States{Waiting: 12, Running: 3, Delivered: 940, Dead: 2}
	counters := states
	counters.Delivered = 1200
	escape := with(unread, "bad \x1b[2J", false)
	n := &Named{Name: "main", URL: "redis://a:6379", Report: Report{
		Shards: 4, Ledger: store.Ledger{
			Records: states, Places: states, Counters: counters,
			Registered: counters.Sum(), Outbox: 1,
		},
		Faults: []store.Fault{with(lost, "", true), escape},
	}}
	require.Equal(t, `store main: redis://a:6379, 4 shard(s)

              records  places  counters  removed
     waiting       12      12        12        0 equal
     running        3       3         3        0 equal
   delivered      940     940      1200      260 equal
        dead        2       2         2        0 equal
   cancelled        0       0         0        0 equal
  registered      957     957      1217          equal
      outbox        1                           

REPAIRED unplaced: lost, default/t/l (shard 0): in no place

FAULT unreadable: unread (shard 0): bad `+"\ufffd"+`[2J
  means: nothing can be done with it: a job is neither listed nor delivered
  to do: `+advices[store.FaultUnreadable].todo+`

957 jobs, 2 faults, 1 of them repaired
`, text(t, n))

	raw, err := json.Marshal(n)
	require.NoError(t, err)
	var got jsonReport
	require.NoError(t, json.Unmarshal(raw, &got))
	require.Equal(t, 1, got.Left)
	require.Equal(t, row{"delivered", 940, 940, 1200, 260, true}, got.Ledger[2])
	require.Equal(t, "unreadable", string(got.Faults[1].Kind))
	require.Equal(t, "lost", got.Faults[0].ID)

	n.Ledger.Places.Waiting++
	n.Faults = nil
	require.Contains(t, text(t, n), "the numbers were read at different moments")
	require.Contains(t, text(t, n), "NOT EQUAL")
}
