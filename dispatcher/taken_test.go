package dispatcher_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestRegister_TakenIDNamesTheFieldsThatDiffer(t *testing.T) {
	d := idleDispatcher(t, dispatcher.Options{})
	first := func() job.New {
		return job.New{
			Spec: job.Spec{
				ID: "close-4711", Queue: job.Queue{Topic: "orders", Lane: "a"},
				URL: "https://a.example/", BodyKind: job.BodyJSON,
				ContentType: "application/json", Body: []byte("1"), Labels: map[string]string{"a": "1"},
				Header: map[string][]string{"X-A": {"1"}, "X-B": {"1"}, "Authorization": {"Bearer hunter2"}},
				Terms: policy.Terms{OnDead: &policy.Callback{
					URL: "https://a.example/dead", Headers: map[string][]string{"Authorization": {"Bearer hunter2"}},
				}},
			},
			Delay: time.Hour, ExpiresIn: 2 * time.Hour,
		}
	}
	stored := d.Register(t.Context(), []job.New{first()})[0]
	require.NoError(t, stored.Err)
	for name, c := range map[string]struct {
		change func(n *job.New)
		fields []string
	}{
		"topic": {func(n *job.New) { n.Topic = "bills" }, []string{"/topic"}},
		"topic and more": {func(n *job.New) {
			n.Topic, n.URL, n.Body = "bills", "https://b.example/", []byte("2")
		}, []string{"/topic"}},
		"lane":   {func(n *job.New) { n.Lane = "b" }, []string{"/lane"}},
		"url":    {func(n *job.New) { n.URL = "https://b.example/" }, []string{"/url"}},
		"method": {func(n *job.New) { n.Method = "PUT" }, []string{"/method"}},
		"body":   {func(n *job.New) { n.Body = []byte("2") }, []string{"/body"}},
		"kind of the body": {func(n *job.New) { n.BodyKind, n.ContentType = job.BodyText, "text/plain" }, []string{
			"/body", "/content_type",
		}},
		"headers": {func(n *job.New) {
			delete(n.Header, "X-A")
			n.Header["X-B"], n.Header["X-C"] = []string{"2"}, []string{"1"}
		}, []string{"/headers/X-A", "/headers/X-B", "/headers/X-C"}},
		"no secret header": {
			func(n *job.New) { delete(n.Header, "Authorization") }, []string{"/headers/Authorization"},
		},
		"a secret alone": {func(n *job.New) { n.Header["Authorization"] = []string{"Bearer guess"} }, []string{
			"/headers/Authorization",
		}},
		"a secret and more": {func(n *job.New) {
			n.Header["Authorization"], n.Retries = []string{"Bearer guess"}, new(3)
		}, []string{"/retries"}},
		"terms": {func(n *job.New) { n.Ladder, n.Timeout = policy.Ladder{time.Second}, time.Second }, []string{
			"/ladder", "/timeout",
		}},
		"labels": {func(n *job.New) { n.Labels = nil }, []string{"/labels"}},
		"callbacks": {
			func(n *job.New) { n.OnDead = nil; n.OnDelivered = &policy.Callback{URL: "https://a.example/"} },
			[]string{"/on_delivered", "/on_dead"},
		},
		"delay":      {func(n *job.New) { n.Delay = 0 }, []string{"/delay"}},
		"run_at":     {func(n *job.New) { n.Delay, n.RunAt = 0, time.Now().Add(3*time.Minute) }, []string{"/run_at"}},
		"expires_in": {func(n *job.New) { n.ExpiresIn = 3 * time.Hour }, []string{"/expires_in"}},
		"no expiry":  {func(n *job.New) { n.ExpiresIn = 0 }, []string{"/expires_at"}},
		"form of the time": {func(n *job.New) {
			n.ExpiresIn, n.ExpiresAt, n.Timeout = 0, stored.Job.ExpiresAt, time.Second
			n.Delay, n.RunAt = 0, stored.Job.DueAt
		}, []string{"/timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := first()
			c.change(&n)
			got := d.Register(t.Context(), []job.New{n})[0]
			var taken *job.TakenError
			require.ErrorAs(t, got.Err, &taken)
			require.Equal(t, "close-4711", taken.ID)
			var fields []string
			for _, f := range taken.Differs {
				fields = append(fields, f.Field)
			}
			require.Equal(t, c.fields, fields)
			require.NotContains(t, fmt.Sprint(taken.Differs, taken), "hunter2")
		})
	}
	require.NoError(t, d.Register(t.Context(), []job.New{first()})[0].Err)
}

func TestRegister_TakenIDOfACancelledJobSaysSo(t *testing.T) {
	d := idleDispatcher(t, dispatcher.Options{})
	n := job.New{Spec: job.Spec{ID: "a", URL: "https://a.example/"}, Delay: time.Hour}
	ref := d.Register(t.Context(), []job.New{n})[0].Job.Ref()
	_, err := d.Cancel(t.Context(), ref, store.Cancellation{})
	require.NoError(t, err)
	var taken *job.TakenError
	require.ErrorAs(t, d.Register(t.Context(), []job.New{n})[0].Err, &taken)
	require.Equal(t, &job.TakenError{ID: "a", Cancelled: true}, taken)
	n.URL = "https://b.example/"
	require.ErrorAs(t, d.Register(t.Context(), []job.New{n})[0].Err, &taken)
	require.Equal(t, &job.TakenError{ID: "a", Differs: []job.FieldError{{Field: "/url", Detail: "differs from the " +
		"stored job"}}}, taken)
}
