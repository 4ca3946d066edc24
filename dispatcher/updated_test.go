package dispatcher_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

// Settings name the client that changed them last; a change that no client asked for leaves the name.
func TestChange_KeepsWhoMadeItAndWhen(t *testing.T) {
	q := job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: "a"}
	changes := map[string]func(context.Context, *dispatcher.Dispatcher, error) (policy.Update, error){
		"topic": func(ctx context.Context, d *dispatcher.Dispatcher, end error) (policy.Update, error) {
			done, err := d.ChangeTopic(ctx, q.Namespace, q.Topic, 0,
				func(p *policy.Topic) error { p.Workers++; return end })
			return done.Updated, err
		},
		"lane": func(ctx context.Context, d *dispatcher.Dispatcher, end error) (policy.Update, error) {
			done, err := d.ChangeLane(ctx, q, 0, func(l *policy.Lane) error { l.LaneConcurrency++; return end })
			return done.Updated, err
		},
		"schedule": func(ctx context.Context, d *dispatcher.Dispatcher, end error) (policy.Update, error) {
			done, err := d.PutSchedule(ctx, q.Namespace, "daily", 0, func(s *store.Schedule) error {
				s.Every, s.Job.Topic, s.Job.URL = time.Hour, q.Topic, "http://receiver.example/"
				return end
			})
			return done.Updated, err
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, err := dispatcher.New(dispatcher.Options{Store: model(), RegisterOnly: true, Logger: quiet})
				require.NoError(t, err)
				got, err := change(t.Context(), d, nil)
				require.NoError(t, err)
				require.Zero(t, got, "no client")

				at := job.Millis(time.Now())
				got, err = change(access.With(t.Context(), access.NewRoot("anna", q.Namespace)), d, nil)
				require.NoError(t, err)
				require.Equal(t, policy.Update{At: at, By: "anna"}, got)

				time.Sleep(time.Minute)
				ben := access.With(t.Context(), access.NewRoot("ben", q.Namespace))
				got, err = change(ben, d, store.ErrDryRun)
				require.NoError(t, err)
				require.Equal(t, policy.Update{At: at, By: "anna"}, got, "a dry run")
				got, err = change(t.Context(), d, nil)
				require.NoError(t, err)
				require.Equal(t, policy.Update{At: at, By: "anna"}, got, "no client")
				got, err = change(ben, d, nil)
				require.NoError(t, err)
				require.Equal(t, policy.Update{At: at.Add(time.Minute), By: "ben"}, got)
			})
		})
	}
}

func TestAddSecret_KeepsWhoAddedIt(t *testing.T) {
	eachOwner(t, func(t *testing.T, owner job.Queue) {
		d, err := dispatcher.New(dispatcher.Options{Store: model(), RegisterOnly: true, Logger: quiet})
		require.NoError(t, err)
		_, err = d.AddSecret(access.With(t.Context(), access.NewRoot("anna", owner.Namespace)),
			owner, sign.NewSecret(), 0)
		require.NoError(t, err)
		stored, err := d.Secrets(t.Context(), owner)
		require.NoError(t, err)
		require.Equal(t, "anna", stored[0].CreatedBy)
	})
}
