package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestWriter_FailsAGroupAtOnceWhenTheFileIsLocked(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	insert(t, s, entry("first", time.Hour))
	other, err := connect(o.Path, false)
	require.NoError(t, err)
	require.NoError(t, other.execText("BEGIN IMMEDIATE"))
	var before, after uint64
	inWriter(t, s, func() { before = s.serial })
	release := stall(t, s)
	errs := make([]error, 5)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			_, errs[i] = s.Insert(t.Context(), store.NewToken(), numbered(string(rune('a'+i)), 1, time.Hour))
		})
	}
	waiting(t, s, len(errs))
	release()
	group.Wait()
	for _, err := range errs {
		require.ErrorContains(t, err, "somebody else has the database locked")
	}
	inWriter(t, s, func() { after = s.serial })
	require.EqualValues(t, 1, after-before, "transactions that waited for the lock")
	require.NoError(t, other.close())
}

func TestWriter_StopsTryingCallsAloneAtAFaultThatMeetsAll(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	insert(t, s, entry("first", time.Hour))
	other, err := connect(o.Path, false)
	require.NoError(t, err)
	var before, after uint64
	inWriter(t, s, func() { before = s.serial })
	hookInto(t, s, insertJob, func(used int, _ []driver.NamedValue) error {
		if used == 1 {
			return errors.New("injected fault") // of the group
		}
		return nil
	})
	hookInto(t, s, begin, func(used int, _ []driver.NamedValue) error {
		if used == 2 {
			return other.execText("BEGIN IMMEDIATE") // before the first call alone
		}
		return nil
	})
	release := stall(t, s)
	errs := make([]error, 4)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			_, errs[i] = s.Insert(t.Context(), store.NewToken(), numbered(string(rune('a'+i)), 1, time.Hour))
		})
	}
	waiting(t, s, len(errs))
	release()
	group.Wait()
	for _, err := range errs {
		require.ErrorContains(t, err, "somebody else has the database locked")
	}
	inWriter(t, s, func() { after = s.serial })
	require.EqualValues(t, 2, after-before, "the group, and the first call alone")
	require.NoError(t, other.close())
}

func TestWriter_AnswersCallsTriedAloneOneByOneUntilTheStoreCloses(t *testing.T) {
	s := opened(t, options(t))
	insert(t, s, entry("first", time.Hour))
	blocked, gate := make(chan struct{}), make(chan struct{})
	hookInto(t, s, insertJob, func(used int, _ []driver.NamedValue) error {
		switch used {
		case 1:
			return errors.New("injected fault") // of the group
		case 3:
			close(blocked)
			<-gate // the second call alone
		}
		return nil
	})
	release := stall(t, s)
	answers := make(chan error, 3)
	for i := range cap(answers) {
		go func() {
			_, err := s.Insert(t.Context(), store.NewToken(), numbered(string(rune('a'+i)), 1, time.Hour))
			answers <- err
		}()
	}
	waiting(t, s, cap(answers))
	release()
	<-blocked
	require.NoError(t, <-answers, "the first does not wait for the others")
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	<-s.closing
	close(gate)
	refused := 0
	for range 2 {
		if err := <-answers; err != nil {
			require.ErrorIs(t, err, store.ErrUnavailable)
			refused++
		}
	}
	require.Equal(t, 1, refused, "the third is not tried any more")
	require.NoError(t, <-closed)
}

func TestClaim_TakesNothingForACallerThatHasLeft(t *testing.T) {
	s := opened(t, options(t))
	insert(t, s, entry("a", 0), entry("b", 0))
	h := claimUp(t, s, 1)[0]
	release := stall(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := s.Claim(ctx, store.NewToken(), wanting(1))
		gone <- err
	}()
	next := wanting(1)
	go func() {
		items := []store.Settlement{settled(h, policy.Verdict{Kind: policy.Delivered})}
		_, _, err := s.Settle(ctx, store.NewToken(), items, &next)
		gone <- err
	}()
	waiting(t, s, 2)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	require.ErrorIs(t, <-gone, context.Canceled)
	release()
	inWriter(t, s, func() {}) // the group may not have been taken yet
	require.Eventually(t, func() bool { return get(t, s, h.ID).State == job.Delivered }, 10*time.Second, time.Millisecond)
	held := 0
	inWriter(t, s, func() { held = len(s.mem.leases) })
	require.Zero(t, held)
	require.Len(t, claimUp(t, s, 1), 1)
}

func TestEnded_ReturnsTheContextsCause(t *testing.T) {
	s := opened(t, options(t))
	why := errors.New("the caller had enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := s.TopicStats(ctx, store.StatsFilter{Namespace: lane.Namespace, Topics: []string{lane.Topic}})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, why)
	_, err = s.Get(ctx, ref("a"))
	require.ErrorIs(t, err, context.Canceled)
	plain, cancelPlain := context.WithCancel(t.Context())
	cancelPlain()
	_, err = s.TopicStats(plain, store.StatsFilter{Namespace: lane.Namespace, Topics: []string{lane.Topic}})
	require.EqualError(t, err, "count jobs: context canceled")
}

func TestWriter_SharesNothingWithACallerThatHasLeft(t *testing.T) {
	s := opened(t, options(t))
	insert(t, s, entry("a", time.Hour))
	calls := map[string]func(context.Context) error{
		"Topics": func(ctx context.Context) error { _, _, err := s.Topics(ctx); return err },
		"PutTopic": func(ctx context.Context) error {
			_, err := s.PutTopic(ctx, store.Topic{Namespace: job.DefaultNamespace, Name: "t"})
			return err
		},
		"Carry": func(ctx context.Context) error {
			_, err := s.Carry(ctx, store.NewToken(), store.CarryOptions{})
			return err
		},
		"Sweep":  func(ctx context.Context) error { _, err := s.Sweep(ctx, store.NewToken(), 10); return err },
		"Cancel": func(ctx context.Context) error { _, err := s.Cancel(ctx, store.NewToken(), ref("a")); return err },
		"TopicStats": func(ctx context.Context) error {
			_, err := s.TopicStats(ctx, store.StatsFilter{Namespace: job.DefaultNamespace, Limit: store.MaxBatch})
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			release := stall(t, s)
			ctx, leave := context.WithCancel(t.Context())
			context.AfterFunc(ctx, release) // at once, with nothing that orders it after the caller's return
			left := make(chan error, 1)
			go func() { left <- call(ctx) }()
			waiting(t, s, 1)
			leave()
			if err := <-left; err != nil { // the writer may have been quicker
				require.ErrorIs(t, err, context.Canceled)
			}
			inWriter(t, s, func() {}) // the race detector has seen what the writer touched
		})
	}
}
