package dispatcher_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

// Settings name the client that changed them last; a change that no client asked for leaves the name.
func TestChange_KeepsWhoMadeItAndWhen(t *testing.T) {
	q := job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: "a"}
	changes := map[string]func(*testing.T, *dispatcher.Dispatcher, store.ChangeOptions, error) (policy.Update, error){
		"topic": func(
			t *testing.T, d *dispatcher.Dispatcher, opts store.ChangeOptions, end error,
		) (policy.Update, error) {
			t.Helper()
			done, err := d.ChangeTopic(t.Context(), q.Namespace, q.Topic, opts,
				func(p *policy.Topic) error { p.Workers++; return end })
			return done.Updated, err
		},
		"lane": func(
			t *testing.T, d *dispatcher.Dispatcher, opts store.ChangeOptions, end error,
		) (policy.Update, error) {
			t.Helper()
			done, err := d.ChangeLane(t.Context(), q, opts,
				func(l *policy.Lane) error { l.LaneConcurrency++; return end })
			return done.Updated, err
		},
		"schedule": func(
			t *testing.T, d *dispatcher.Dispatcher, opts store.ChangeOptions, end error,
		) (policy.Update, error) {
			t.Helper()
			done, err := d.PutSchedule(t.Context(), q.Namespace, "daily", opts, func(s *store.Schedule) error {
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
				got, err := change(t, d, store.ChangeOptions{}, nil)
				require.NoError(t, err)
				require.Zero(t, got, "no client")

				anna := policy.Update{At: job.Millis(time.Now()), By: "anna"}
				got, err = change(t, d, store.ChangeOptions{Updated: anna}, nil)
				require.NoError(t, err)
				require.Equal(t, anna, got)

				ben := policy.Update{At: anna.At.Add(time.Minute), By: "ben"}
				got, err = change(t, d, store.ChangeOptions{Updated: ben}, store.ErrDryRun)
				require.NoError(t, err)
				require.Equal(t, anna, got, "a dry run")
				got, err = change(t, d, store.ChangeOptions{}, nil)
				require.NoError(t, err)
				require.Equal(t, anna, got, "no client")
				got, err = change(t, d, store.ChangeOptions{Updated: ben}, nil)
				require.NoError(t, err)
				require.Equal(t, ben, got)
			})
		})
	}
}

func TestAddSecret_KeepsWhoAddedIt(t *testing.T) {
	eachOwner(t, func(t *testing.T, owner job.Queue) {
		d, err := dispatcher.New(dispatcher.Options{Store: model(), RegisterOnly: true, Logger: quiet})
		require.NoError(t, err)
		_, err = d.AddSecret(t.Context(), owner, sign.NewSecret(),
			store.ChangeOptions{Updated: policy.Update{At: time.Now(), By: "anna"}})
		require.NoError(t, err)
		stored, err := d.Secrets(t.Context(), owner)
		require.NoError(t, err)
		require.Equal(t, "anna", stored[0].CreatedBy)
	})
}
