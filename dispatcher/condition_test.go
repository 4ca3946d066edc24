package dispatcher_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// Of changes that require one revision, at once and in two processes, exactly one is made.
func TestChange_IsMadeOnceForARequiredRevision(t *testing.T) {
	engine := storetest.NewModel(storetest.ModelOptions{})
	var all [2]*dispatcher.Dispatcher
	for i := range all {
		d, err := dispatcher.New(dispatcher.Options{Store: engine, RegisterOnly: true, Logger: quiet})
		require.NoError(t, err)
		all[i] = d
	}
	ofTopic := job.Queue{Namespace: job.DefaultNamespace, Topic: "orders"}
	ofLane := job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: "a"}
	changes := map[string]func(d *dispatcher.Dispatcher, ifRevision int64) error{
		"topic": func(d *dispatcher.Dispatcher, ifRevision int64) error {
			_, err := d.ChangeTopic(t.Context(), job.DefaultNamespace, "orders",
				store.ChangeOptions{IfRevision: ifRevision}, func(p *policy.Topic) error { p.Workers++; return nil })
			return err
		},
		"lane": func(d *dispatcher.Dispatcher, ifRevision int64) error {
			_, err := d.ReplaceLane(t.Context(), ofLane, store.ChangeOptions{IfRevision: ifRevision},
				func(l *policy.Lane) error { l.LaneConcurrency++; return nil })
			return err
		},
		"secret of the topic": func(d *dispatcher.Dispatcher, ifRevision int64) error {
			_, err := d.AddSecret(t.Context(), ofTopic, sign.NewSecret(), store.ChangeOptions{IfRevision: ifRevision})
			return err
		},
		"secret of the lane": func(d *dispatcher.Dispatcher, ifRevision int64) error {
			_, err := d.AddSecret(t.Context(), ofLane, sign.NewSecret(), store.ChangeOptions{IfRevision: ifRevision})
			return err
		},
	}
	revision := func(name string) int64 {
		if name == "topic" || name == "secret of the topic" {
			topic, err := all[0].Topic(t.Context(), job.DefaultNamespace, "orders")
			if errors.Is(err, store.ErrNotFound) {
				return 0
			}
			require.NoError(t, err)
			return topic.Revision
		}
		lane, err := all[0].Lane(t.Context(), ofLane)
		require.NoError(t, err)
		return lane.Revision
	}
	for _, name := range []string{"topic", "secret of the topic", "lane", "secret of the lane"} {
		change := changes[name]
		for round := range 3 {
			before := revision(name)
			required := before
			if before == 0 {
				require.Zero(t, round)
				required = store.MustNotExist
			}
			var made atomic.Int32
			var running sync.WaitGroup
			for i := range 8 {
				running.Go(func() {
					err := change(all[i%2], required)
					if err == nil {
						made.Add(1)
						return
					}
					if refused, ok := errors.AsType[*store.RevisionError](err); ok {
						require.NotEqual(t, before, refused.Revision)
					} else {
						require.NoError(t, err)
					}
				})
			}
			running.Wait()
			require.EqualValues(t, 1, made.Load(), name)
			require.NoError(t, change(all[0], store.MustExist), name)
		}
	}
}
