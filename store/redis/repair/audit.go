package repair

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

const (
	// auditShare is the pause after a step of an audit, in multiples of the step's duration.
	auditShare = 4
	// auditPause bounds it, and is the pause while scores are moved after a step of the clock.
	auditPause = 100 * time.Millisecond
	// movingPauses bounds how often an audit waits in a row for scores to be moved: without a carrier they are not. An
	// audit that repairs gives up then.
	movingPauses = 100
	// staleSteps bounds how often a step is made again in a row because queues were forgotten meanwhile.
	staleSteps = 10
)

// Audit makes all steps of a check, see store.Auditor. Without repair the scripts only look.
func (s *Repairer) Audit(ctx context.Context, repair bool) iter.Seq2[store.AuditPage, error] {
	return func(yield func(store.AuditPage, error) bool) {
		p, err := s.auditPass(ctx, repair)
		for last, stale, pauses := false, 0, 0; err == nil && !last; {
			began := time.Now()
			var moving int64
			moving, err = s.Client.Exists(ctx, s.Keys.StaleAgenda, s.Keys.StaleThrottles).Result()
			switch {
			case err != nil:
				err = connect.MapError(ctx, err)
				continue
			case moving > 0 && repair && pauses == movingPauses:
				err = errors.New("the clock was set, and times are not moved yet: repair the store while a process " +
					"with the role worker runs")
				continue
			// a step of the clock: queues whose score is not moved yet would seem to be scheduled wrongly
			case moving > 0 && pauses < movingPauses:
				pauses++
				if !yield(store.AuditPage{Pause: auditPause}, nil) {
					return
				}
				continue
			}
			if moving == 0 {
				pauses = 0
			}
			last, err = s.makeStep(ctx, p)
			if errors.Is(err, layout.ErrStale) && stale < staleSteps {
				s.ForgetQueues()
				err = nil
				stale++
			} else {
				stale = 0
			}
			for i := range p.faults {
				p.faults[i].Shard = s.Index
			}
			page := store.AuditPage{Faults: p.faults, Ledger: p.ledger, Pause: min(auditShare*time.Since(began),
				auditPause)}
			if err == nil && !yield(page, nil) {
				return
			}
		}
		if err != nil {
			yield(store.AuditPage{}, fmt.Errorf("audit shard %d: %w", s.Index, err))
		}
	}
}

// auditPass begins a pass. One that repairs after a restart of the server does not believe what queues without jobs
// say.
func (s *Repairer) auditPass(ctx context.Context, repair bool) (*pass, error) {
	p := newPass("", true)
	p.audit = !repair
	if repair {
		checked, err := s.IsChecked(ctx)
		p.daily = checked
		return p, err
	}
	return p, nil
}
