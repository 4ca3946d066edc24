package storetest

import (
	"net/http"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// answered returns the settlement of an attempt with an HTTP status.
func answered(h store.ClaimedJob, v policy.Verdict, status int) store.Settlement {
	item := settlement(h, v)
	item.Attempt.Status = status
	return item
}

// attempt makes one attempt of the test's only claimable job.
func (s *suite) attempt(id string, v policy.Verdict, status int) {
	s.Helper()
	require.NoError(s, s.settle(answered(s.claimAll(id)[0], v, status))[0])
}

var answerCases = []testCase{
	{"every read returns the status of the last attempt", func(s *suite) {
		s.insertNew(s.entry("a"))
		require.Zero(s, s.get("a").Status)
		s.attempt("a", retry(0), http.StatusServiceUnavailable)
		require.Equal(s, http.StatusServiceUnavailable, s.get("a").Status)
		h := s.claimAll("a")[0]
		require.Equal(s, http.StatusServiceUnavailable, h.Status)
		require.NoError(s, s.settle(answered(h, retry(0), 0))[0])
		require.Zero(s, s.get("a").Status, "the last attempt had no answer")
		s.attempt("a", dead, http.StatusGone)
		require.Equal(s, http.StatusGone, s.list(s.filter(job.Dead))[0].Status)
		got, err := s.revive("a", long)
		require.NoError(s, err)
		require.Equal(s, http.StatusGone, got.Status, "a revival leaves it")
		got, err = s.edit("a", func(spec *job.Spec) { spec.Timeout = time.Second })
		require.NoError(s, err)
		require.Equal(s, http.StatusGone, got.Status, "an edit leaves it")
		require.Equal(s, http.StatusGone, s.insert(s.entry("a"))[0].Job.Status)
		got, err = s.cancel("a")
		require.NoError(s, err)
		require.Equal(s, http.StatusGone, got.Status)
	}},
	{"released, lost and missing attempts keep the status", func(s *suite) {
		s.insertNew(s.entry("a"))
		s.attempt("a", retry(0), http.StatusTeapot)
		s.settleOne(s.claimAll("a")[0], released)
		require.Equal(s, http.StatusTeapot, s.get("a").Status, "released")
		s.expireOne()
		require.Equal(s, http.StatusTeapot, s.get("a").Status, "lost")
		item := settlement(s.claimAll("a")[0], policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExpired})
		item.Attempt = job.Attempt{}
		require.NoError(s, s.settle(item)[0])
		require.Equal(s, http.StatusTeapot, s.get("a").Status, "dead without a request")
	}},
	{"every read returns the error class of the last attempt, or its status", func(s *suite) {
		s.insertNew(s.entry("a"))
		attempt := func(status int, class policy.ErrorClass) (claimed, after job.Progress) {
			c := s.claimAll("a")[0]
			item := answered(c, retry(0), status)
			item.Attempt.ErrorClass = class
			require.NoError(s, s.settle(item)[0])
			return c.Progress, s.get("a").Progress
		}
		for _, c := range []struct {
			status, wantStatus int
			class, wantClass   policy.ErrorClass
		}{
			{0, 0, policy.ClassTimeoutDial, policy.ClassTimeoutDial},
			{500, 500, "", ""},
			{200, 0, policy.ClassReset, policy.ClassReset}, // an incomplete answer
			{0, 0, "", ""},
			{0, 0, policy.ClassRefused, policy.ClassRefused},
		} {
			_, after := attempt(c.status, c.class)
			require.Equal(s, c.wantStatus, after.Status)
			require.Equal(s, c.wantClass, after.ErrorClass)
		}
		claimed, _ := attempt(503, "")
		require.Equal(s, policy.ClassRefused, claimed.ErrorClass, "a claim")
	}},
	{"List filters by reason, status and error class", func(s *suite) {
		for _, j := range []struct {
			id     string
			reason policy.Reason
			status int
			class  policy.ErrorClass
			lane   int
		}{
			{"gone", policy.ReasonGaveUp, 410, "", 0},
			{"gone in another lane", policy.ReasonGaveUp, 410, "", 1},
			{"failed", policy.ReasonExhausted, 500, "", 0},
			{"failed, too", policy.ReasonExhausted, 503, "", 0},
			{"silent", policy.ReasonExhausted, 0, policy.ClassTimeoutHeaders, 0},
			{"cut off", policy.ReasonExhausted, 503, policy.ClassReset, 0},
			{"unasked", policy.ReasonExhausted, 0, "", 0},
		} {
			s.queue = s.laneQueue(j.lane)
			s.insertNew(s.entry(j.id, labelled("lane", s.queue.Lane)))
			item := answered(s.claimAll(j.id)[0], policy.Verdict{Kind: policy.Dead, Reason: j.reason}, j.status)
			item.Attempt.ErrorClass = j.class
			require.NoError(s, s.settle(item)[0])
		}
		s.queue = s.laneQueue(0)
		s.insertNew(s.entry("delivered"), s.entry("waits"))
		for _, h := range s.claimAll("delivered", "waits") {
			v := delivered
			if h.ID == "waits" {
				v = retry(long)
			}
			require.NoError(s, s.settle(answered(h, v, 503))[0])
		}
		for _, c := range []struct {
			filter store.Filter
			wanted []string
		}{
			{store.Filter{States: []job.State{job.Dead}, Reason: policy.ReasonGaveUp}, []string{
				"gone", "gone in another lane",
			}},
			{store.Filter{States: []job.State{job.Dead}, Reason: policy.ReasonExhausted}, []string{
				"failed", "failed, too", "silent", "cut off", "unasked",
			}},
			{store.Filter{ErrorClass: policy.ClassTimeoutHeaders}, []string{"silent"}},
			{store.Filter{ErrorClass: policy.ClassDNS}, nil},
			{store.Filter{ErrorClass: store.AnyError}, []string{"silent", "cut off"}},
			{store.Filter{States: []job.State{job.Dead}, ErrorClass: store.UnknownAnswer}, []string{"unasked"}},
			{store.Filter{States: []job.State{job.Dead}, Reason: policy.ReasonExhausted, Status: 503}, []string{
				"failed, too",
			}},
			{store.Filter{States: []job.State{job.Dead}, Reason: policy.ReasonBlocked}, nil},
			{store.Filter{States: []job.State{job.Dead}, Status: 410}, []string{"gone", "gone in another lane"}},
			{store.Filter{States: []job.State{job.Dead}, Status: 410, Lane: s.laneQueue(1).
				Lane}, []string{"gone in another lane"}},
			{store.Filter{
				States: []job.State{job.Dead}, Reason: policy.ReasonGaveUp,
				Labels: []store.Label{{Key: "lane", Value: s.laneQueue(0).Lane}},
			}, []string{"gone"}},
			{store.Filter{States: []job.State{job.Scheduled}, Status: 503}, []string{"waits"}},
			{store.Filter{States: []job.State{job.Delivered}, Status: 503}, []string{"delivered"}},
			{store.Filter{States: []job.State{job.Delivered}, Reason: policy.ReasonGaveUp}, nil},
		} {
			c.filter.Namespace, c.filter.Topic = s.queue.Namespace, s.queue.Topic
			for _, limit := range []int{1, 500} {
				c.filter.Limit = limit
				require.ElementsMatch(s, c.wanted, idsOfJobs(s.list(c.filter)), "%+v", c.filter)
			}
		}
	}},
	{"every read returns the callbacks, set or not", func(s *suite) {
		with, without := s.entry("with"), s.entry("without")
		with.OnDead = &policy.Callback{URL: "http://owner.example/dead"}
		with.Fingerprint = codec.Fingerprint(&with.New)
		s.insertNew(with, without)
		check := func(what string, spec job.Spec) {
			wanted := map[string]job.Spec{"with": with.Spec, "without": without.Spec}[spec.ID]
			require.Equal(s, wanted.OnDelivered, spec.OnDelivered, what)
			require.Equal(s, wanted.OnDead, spec.OnDead, what)
		}
		for _, id := range []string{"with", "without"} {
			check("get", s.get(id).Spec)
		}
		for _, j := range s.list(s.filter(job.Ready)) {
			check("list", j.Spec)
		}
		jobs := s.claimAll("with", "without")
		for _, h := range jobs {
			check("claim", h.Spec)
			s.settleOne(h, retry(long))
			got, err := s.edit(h.ID, func(spec *job.Spec) { spec.URL = "http://new.example/" })
			require.NoError(s, err)
			check("edit", got.Spec)
			check("get after an edit", s.get(h.ID).Spec)
		}
	}},
}
