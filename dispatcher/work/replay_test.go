package work

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// largeEvents makes jobs with bodies of a size, or fails.
type largeEvents struct {
	size int
	err  error
}

func (largeEvents) ReplayLanes(context.Context, job.Ref, *store.Filter, string) (store.ReplayPart, error) {
	return store.ReplayPart{}, nil
}

func (e largeEvents) ReplayJobs(
	_ context.Context, _ job.Ref, _ string, jobs []job.New, _ int,
) (made []store.NewJob, errs []error) {
	if e.err != nil {
		return nil, []error{e.err}
	}
	for _, n := range jobs {
		n.Body = make([]byte, e.size)
		made, errs = append(made, store.NewJob{New: n}), append(errs, nil)
	}
	return made, errs
}

func replayOnce(e largeEvents) (step, []error) {
	s := step{Worker: &Worker{Events: e}, progress: &progress{}, ref: refOf("default", "w"), started: time.Now()}
	errs := s.replay(context.Background(), []target{{ID: "a"}, {ID: "b"}, {ID: "c"}})
	return s, errs
}

func TestReplay_LeavesWhatIsTooMuchForAStep(t *testing.T) {
	s, errs := replayOnce(largeEvents{size: maxPlanBytes * 3 / 4})
	require.Len(t, s.outbox, 2)
	require.Equal(t, []error{nil, nil, errNotRead}, errs)
}

func TestReplay_LeavesWhatMaySucceedLater(t *testing.T) {
	_, errs := replayOnce(largeEvents{err: errors.New("the settings are not readable")})
	require.ErrorIs(t, errs[0], store.ErrUnavailable)
	_, errs = replayOnce(largeEvents{err: store.ErrNotFound})
	require.Equal(t, store.ErrNotFound, errs[0])
	s, errs := replayOnce(largeEvents{err: &job.QuotaError{Quota: "pending", RetryAfter: 5 * time.Second}})
	require.ErrorIs(t, errs[0], store.ErrUnavailable)
	require.Equal(t, 5*time.Second, s.pause)
	require.Contains(t, s.WaitingFor, "pending")
}
