package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// failOnce makes the next use of a statement fail. It returns the number of failures to come.
func failOnce(s *Store, sql string) *int {
	times := new(int)
	*times = 1
	hookSQL(s, sql, &hook{do: func(int, []driver.NamedValue) error {
		if *times > 0 {
			*times--
			return errors.New("injected fault")
		}
		return nil
	}})
	return times
}

func TestFault_UndoesTheWholeCallWhichCanBeRepeated(t *testing.T) {
	c := &twoClocks{}
	c.ms.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli())
	o := options(t)
	o.Limits.KeepDead.Max = new(int64(0))
	s, err := Open(t.Context(), at(c.read, o))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })

	// again makes a call that fails in the middle and at the commit, and then succeeds under the same token.
	again := func(what string, middle db.Statement, do func(store.Token) error) {
		t.Helper()
		token := store.NewToken()
		for _, id := range []string{middle.Text(), commitSQL} {
			times := failOnce(s, id)
			require.ErrorIs(t, do(token), store.ErrUnavailable, what)
			require.Zero(t, *times, what)
			verify(t, s)
		}
		require.NoError(t, do(token), what)
		verify(t, s)
		require.NoError(t, do(token), what)
		verify(t, s)
	}
	spare := newJob("spare", 0)
	spare.Fingerprint = []byte("print")
	again("insert", table.UpdateTopic, func(token store.Token) error {
		_, err := s.Insert(t.Context(), token, append(newJobs("job", 10, 0), spare))
		return err
	})
	var jobs []store.ClaimedJob
	again("claim", table.InsertLeases, func(token store.Token) error {
		claimed, err := s.Claim(t.Context(), token, claimRequest(6))
		jobs = claimed.Jobs
		return err
	})
	require.Len(t, jobs, 6)
	again("settle", table.InsertOutbox, func(token store.Token) error {
		delivered := settlementOf(jobs[0], policy.Verdict{Kind: policy.Delivered})
		delivered.Outbox = []store.NewJob{newJob("child", 0)}
		errs, _, err := s.Settle(t.Context(), token, []store.Settlement{
			delivered, settlementOf(jobs[1], policy.Verdict{Kind: policy.Again}),
			settlementOf(jobs[2], policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonGaveUp}),
		}, nil)
		return errors.Join(append(errs, err)...)
	})
	require.ErrorIs(t, getError(s, jobs[2].Ref()), store.ErrNotFound, "no dead job is kept")
	again("cancel a running job", table.MarkCancel, func(token store.Token) error {
		_, err := s.Cancel(t.Context(), token, jobs[3].Ref(), store.Cancellation{})
		return err
	})
	again("cancel", table.EndJob, func(token store.Token) error {
		_, err := s.Cancel(t.Context(), token, spare.Ref(), store.Cancellation{})
		return err
	})
	again("replace", table.ReplaceJob, func(token store.Token) error {
		_, err := s.Replace(t.Context(), token, jobs[1].Ref(),
			store.Replacement{Kind: job.EventEdited, Due: &job.TimeOrDelay{In: time.Hour}})
		return err
	})
	c.pass(time.Minute)
	again("carry", table.InsertAttempt, func(token store.Token) error {
		carried, err := s.Carry(t.Context(), token, store.CarryOptions{})
		if err == nil {
			require.Equal(t, 3, carried.ExpiredLeases)
			require.Len(t, carried.Outbox, 1)
		}
		return err
	})
	again("remove relayed entries", table.DeleteOutbox, func(token store.Token) error {
		_, err := s.Carry(t.Context(), token, store.CarryOptions{Relayed: []job.Ref{ref("child")}})
		return err
	})
	again("revive", table.ReviveJob, func(token store.Token) error {
		revived, err := s.Revive(t.Context(), token, []store.Revival{{Ref: jobs[0].Ref()}, {Ref: ref("missing")}})
		if err == nil {
			require.Equal(t, 1, revived[0].Job.Generation)
			require.ErrorIs(t, revived[1].Err, store.ErrNotFound)
		}
		return err
	})
	_, err = store.PutTopic(t.Context(), s, store.Topic{
		Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{IDWindow: new(30 * 24 * time.Hour)},
	})
	require.NoError(t, err)
	c.pass(8 * 24 * time.Hour)
	again("sweep jobs", table.InsertID, func(token store.Token) error {
		swept, err := s.Sweep(t.Context(), token, 100)
		if err == nil {
			require.Equal(t, 2, swept.Jobs)
		}
		return err
	})
	c.pass(30 * 24 * time.Hour)
	again("sweep ids", table.DeleteID, func(token store.Token) error {
		swept, err := s.Sweep(t.Context(), token, 100)
		if err == nil {
			require.Equal(t, 1, swept.IDs)
		}
		return err
	})
	again("put a topic", table.InsertDocument, func(token store.Token) error {
		key := store.DocumentKey{Kind: store.KindTopic, Namespace: lane.Namespace, Name: lane.Topic}
		put, err := s.PutDocument(t.Context(), token, store.Document{Key: key, Value: []byte(`{"paused":true}`)},
			policy.Limits{Paused: true})
		if err != nil {
			require.Len(t, claimJobs(t, s, 1), 1, "a policy that was not stored does not apply")
		} else {
			require.Positive(t, put.Revision)
			require.Empty(t, claimJobs(t, s, 1))
		}
		return err
	})
}

// getError returns the error of Get.
func getError(s *Store, ref job.Ref) error {
	_, err := s.Get(context.Background(), ref)
	return err
}
