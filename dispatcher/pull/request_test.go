package pull_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
)

// signerFunc is a job.Signer whose signature is a name.
type signerFunc string

func (s signerFunc) Sign(string, time.Time, []byte) string { return string(s) }

func TestLease_HasTheRequestOfAPushIfTheClientAsksForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{
			URL: "https://topic.example", Headers: map[string][]string{
				"X-Topic": {"1"},
				"X-Pin":   job.SealedValues("sealed:3"), "X-Api-Key": job.SealedValues("plain:x"),
			}, Retries: new(7),
		})
		f.insertJobs(
			store.NewJob{New: job.New{Spec: job.Spec{
				ID: "a_1", Queue: job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: "a"}, Method: "PUT",
				ContentType: "text/plain", BodyKind: job.BodyText, Body: []byte("1"),
				Header: map[string][]string{"X-Job": job.SealedValues("sealed:2"), "Authorization": {"Bearer s3cret"}},
			}}},
		)
		p, _ := f.process()
		leased := f.lease(p, 1, 0)
		require.Nil(t, leased[0].Request)
		require.Equal(t, []string{"2"}, leased[0].Header["X-Job"])
		p.Release(t.Context(), leased)

		ask := request(1, 0)
		ask.Request = true
		f.opened = nil
		leased, err := p.Lease(t.Context(), ask)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"X-Job", "X-Pin"}, f.opened, "each is opened once")
		require.Equal(t, []string{"2"}, leased[0].Header["X-Job"])
		got := leased[0].Request
		require.Equal(t, []string{"PUT", "https://topic.example", "1"}, []string{got.Method, got.URL, string(got.Body)})
		header, err := got.HeaderAt(time.Now())
		require.NoError(t, err)
		require.Equal(t, []string{"1"}, header["X-Topic"])
		require.Equal(t, []string{"2"}, header["X-Job"])
		require.Equal(t, []string{"3"}, header["X-Pin"])
		require.Equal(t, []string{"topic"}, header["Webhook-Signature"])
		require.Equal(t, []string{"7"}, header["Ringback-Retries-Left"])
		require.NotContains(t, header, "Authorization")
		require.NotContains(t, header, "X-Api-Key")
		require.Contains(t, leased[0].Header, "Authorization", "the job itself is not changed")
		p.Release(t.Context(), leased)

		_, err = router.New(f.store).PutLane(t.Context(), store.Lane{
			Queue:    job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: "a"},
			Settings: policy.Lane{URL: "https://lane.example", Secrets: []policy.Secret{{ID: "s"}}},
		})
		require.NoError(t, err)
		leased, err = p.Lease(t.Context(), ask)
		require.NoError(t, err)
		require.Equal(t, "https://lane.example", leased[0].Request.URL)
		require.Equal(t, "lane", leased[0].Request.Signer.Sign("", time.Now(), nil))
		p.Release(t.Context(), leased)
	})
}

func TestLease_WithARequestHoldsJobsThatCannotBeSigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		f.unsigned = errors.New("sealed under another key")
		f.insert("a_1")
		p, _ := f.process()
		ask := request(1, time.Second, "a")
		ask.Request = true
		leased, err := p.Lease(t.Context(), ask)
		require.NoError(t, err)
		require.Empty(t, leased)
		f.insert("a_2", "b_1")
		require.Equal(t, []string{"b_1"}, ids(f.lease(p, 3, time.Second)), "the lane is paused for all")
		require.Equal(t, 0, f.get("a_1").FailedAttempts)
		time.Sleep(time.Minute)
		require.Len(t, f.lease(p, 1, time.Second), 1, "a consumer needs no signature")
	})
}

func TestLease_HoldsJobsWhoseHeadersCannotBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		f.unopened = errors.New("sealed under another key")
		f.insertJobs(store.NewJob{New: job.New{Spec: job.Spec{
			ID: "a_1", Queue: job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: "a"},
			Header: map[string][]string{"X-Job": job.SealedValues("2")},
		}}})
		f.insert("b_1")
		p, _ := f.process()
		require.Equal(t, []string{"b_1"}, ids(f.lease(p, 2, time.Second)))
		require.Zero(t, f.get("a_1").Attempts)
		f.unopened = nil
		require.Equal(t, []string{"a_1"}, ids(f.lease(p, 2, time.Minute)))
	})
}

// What a receiver answered is judged as the answer to a push: see policy.Judge.
func TestSettle_JudgesAnswersAsPushDoes(t *testing.T) {
	for name, c := range map[string]struct {
		report store.LeaseReport
		state  job.State
		reason policy.Reason
		wait   time.Duration
	}{
		"success": {store.LeaseReport{Status: 200, Response: []byte("all ok")}, job.Delivered, "", 0},
		"body of no success": {
			store.LeaseReport{Status: 200, Response: []byte("sorry")}, job.Scheduled, "", time.Minute,
		},
		"failure":         {store.LeaseReport{Status: 503}, job.Scheduled, "", time.Minute},
		"shorter wait":    {store.LeaseReport{Status: 503, After: new(time.Second)}, job.Scheduled, "", time.Minute},
		"longer wait":     {store.LeaseReport{Status: 503, After: new(time.Hour)}, job.Scheduled, "", time.Hour},
		"given up":        {store.LeaseReport{Status: 410}, job.Dead, policy.ReasonGaveUp, 0},
		"no retry":        {store.LeaseReport{Status: 422, NonRetryable: true}, job.Dead, policy.ReasonNonRetryable, 0},
		"no retry of 5xx": {store.LeaseReport{Status: 500, NonRetryable: true}, job.Scheduled, "", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, 1, policy.Topic{
					Success: policy.Success{BodyContains: "ok"}, GiveUpOn: []string{"410"},
					Ladder: policy.Ladder{time.Minute}, Jitter: new(0.0),
				})
				f.insert("a_1")
				p, _ := f.process()
				report := f.report(f.lease(p, 1, 0)[0], store.LeaseAnswered)
				report.Status, report.Response, report.After, report.NonRetryable = c.report.Status, c.report.Response,
					c.report.After, c.report.NonRetryable
				require.Equal(t, []error{nil}, f.settle(p, report))
				require.Equal(t, []error{nil}, f.settle(p, report), "a repeat is answered as the first one")
				got := f.get("a_1")
				require.Equal(t, c.state, got.State)
				require.Equal(t, c.reason, got.Reason)
				require.Equal(t, c.report.Status, got.History[0].Status)
				require.Empty(t, got.History[0].ErrorClass)
				if c.wait > 0 {
					require.Equal(t, c.wait, time.Until(got.DueAt).Round(time.Second))
				}
			})
		})
	}
}

// A receiver that asks for a pause gets none of its lane's jobs before it is over, whichever client leases them.
func TestSettle_AnAnswerWithRetryAfterPausesTheLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		f.insert("a_1", "a_2", "b_1", "c_1", "c_2")
		p, _ := f.process()
		leased := f.lease(p, 3, 0) // one of each lane
		var reports []store.LeaseReport
		for _, l := range leased {
			reports = append(reports, f.report(l, store.LeaseAnswered))
			reports[len(reports)-1].Status = 404
			if l.Lane == "a" {
				reports[len(reports)-1].Status = 429
			}
			reports[len(reports)-1].After = new(10 * time.Second)
		}
		f.settle(p, reports...)
		began := time.Now()
		leased = f.lease(p, 3, time.Second)
		require.Equal(t, []string{"c_2"}, ids(leased), "a 404 says nothing about the lane")
		leased = f.lease(p, 1, time.Minute)
		require.Equal(t, []string{"a_2"}, ids(leased))
		require.GreaterOrEqual(t, time.Since(began), 10*time.Second)
	})
}

func TestSettle_ReleasesWithoutAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, 1, policy.Topic{})
		f.insert("a_1")
		p, _ := f.process()
		report := f.report(f.lease(p, 1, 0)[0], store.LeaseRelease)
		require.Equal(t, []error{nil}, f.settle(p, report))
		got := f.get("a_1")
		require.Equal(t, []int{0, 0}, []int{got.Attempts, got.FailedAttempts})
		require.Empty(t, got.History)
		require.Empty(t, f.events)
		leased := f.lease(p, 1, time.Second)
		require.Len(t, leased, 1, "it is due at once")
		errs := f.settle(p, f.report(leased[0], store.LeaseDone), report)
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], store.ErrLeaseLost)
	})
}
