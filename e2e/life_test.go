package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// world is a running ringback and a receiver, shared by the tests of one engine.
type world struct {
	*process
	receiver *receiver
}

// to returns a URL of the receiver.
func (w world) to(path string) string { return w.receiver.URL + path }

func TestJob_Lifecycle(t *testing.T) {
	tests := []struct {
		name string
		test func(t *testing.T, w world)
	}{
		{"due now is sent at once", dueNow},
		{"due in 300 ms is sent then and never before", dueSoon},
		{"due in the past is sent at once", duePast},
		{"arrives as it was sent", arrivesAsSent},
		{"climbs the ladder while the receiver fails", climbs},
		{"dies when the ladder is exhausted", exhausts},
		{"dies at once when the receiver responds with 410", givesUp},
		{"is cancelled before its attempt", cancelBefore},
		{"is delivered although cancelled while its attempt succeeds", cancelWhileItSucceeds},
		{"is cancelled while its attempt fails", cancelWhileItFails},
		{"cannot be cancelled after its end", cancelAfter},
		{"is sent as edited", edits},
		{"is run at once on request", runsNow},
		{"is revived with a fresh budget", revives},
		{"waits while its topic is paused", pauses},
		{"is known by its id", sameID},
		{"is registered in a batch that one bad item does not spoil", batch},
	}
	onEngines(t, func(t *testing.T, store string) {
		w := world{start(t, store), newReceiver(t)}
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				test.test(t, w)
			})
		}
	})
}

func dueNow(t *testing.T, w world) {
	job := register(t, w.process, obj{"topic": "now", "url": w.to("/ok"), "body": obj{"n": 1}})
	w.receiver.arrives(t, job.ID, 1)
	done := await(t, w.process, job.ID, "delivered")
	require.Equal(t, 1, done.AttemptsMade)
	require.Equal(t, []string{"attempt"}, done.kinds())
	require.Equal(t, http.StatusOK, done.Attempts[0].Status)
	require.Equal(t, "delivered", done.Attempts[0].Verdict)
}

func dueSoon(t *testing.T, w world) {
	sent := time.Now()
	job := register(t, w.process, obj{"topic": "soon", "url": w.to("/ok"), "delay": "300ms"})
	first := w.receiver.arrives(t, job.ID, 1)[0]
	require.GreaterOrEqual(t, first.began.Sub(sent), 300*time.Millisecond)
	require.False(t, first.began.Before(first.due), "began %s, due %s", first.began, first.due)
}

func duePast(t *testing.T, w world) {
	job := register(t, w.process, obj{"topic": "past", "url": w.to("/ok"), "run_at": "2020-01-01T00:00:00Z"})
	w.receiver.arrives(t, job.ID, 1)
}

func arrivesAsSent(t *testing.T, w world) {
	const body = `{"b":1.0, "a":[ 1,2 ] , "ü":"\u00fc"}`
	job := call[view](t, w.process, http.MethodPost, "/v1/jobs",
		`{"topic":"verbatim","url":"`+w.to("/ok")+`","body":`+body+`}`, http.StatusCreated)
	got := w.receiver.arrives(t, job.ID, 1)[0].body
	require.Zero(t, strings.Compare(body, got), "must be the same byte for byte: %s", got)
}

func climbs(t *testing.T, w world) {
	job := register(t, w.process,
		obj{"topic": "climb", "url": w.to("/fail/3"), "ladder": []string{"50ms", "100ms", "200ms"}})
	arrivals := w.receiver.arrives(t, job.ID, 4)
	for i, rung := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond} {
		waited := arrivals[i+1].began.Sub(arrivals[i].answered)
		// The rung is counted from when ringback has read the answer, to which this clock has only its own end.
		require.GreaterOrEqual(t, waited, rung-5*time.Millisecond, "rung %d", i+1)
	}
	for i, a := range arrivals {
		require.Equal(t, strconv.Itoa(i+1), a.attempt)
	}
	done := await(t, w.process, job.ID, "delivered")
	require.Equal(t, 4, done.AttemptsMade)
	require.Len(t, done.Attempts, 4)
}

func exhausts(t *testing.T, w world) {
	job := register(t, w.process,
		obj{"topic": "exhaust", "url": w.to("/status/503"), "ladder": []string{"20ms"}, "retries": 2})
	dead := await(t, w.process, job.ID, "dead")
	require.Equal(t, "exhausted", dead.Reason)
	require.Equal(t, 3, dead.AttemptsMade)
	require.Len(t, w.receiver.of(job.ID), 3)
}

func givesUp(t *testing.T, w world) {
	job := register(t, w.process, obj{"topic": "gone", "url": w.to("/status/410")})
	dead := await(t, w.process, job.ID, "dead")
	require.Equal(t, "gave_up", dead.Reason)
	require.Equal(t, 1, dead.AttemptsMade)
}

func cancelBefore(t *testing.T, w world) {
	job := register(t, w.process, obj{"topic": "cancel", "url": w.to("/ok"), "delay": "400ms"})
	for range 2 {
		cancelled := call[view](t, w.process, http.MethodDelete, "/v1/jobs/"+job.ID, nil, http.StatusOK)
		require.Equal(t, "cancelled", cancelled.State)
	}
	// Another job, due after it, arrives: the cancelled one has been passed over by then.
	later := register(t, w.process, obj{"topic": "cancel", "url": w.to("/ok"), "delay": "600ms"})
	w.receiver.arrives(t, later.ID, 1)
	require.Empty(t, w.receiver.of(job.ID))
}

func cancelWhileItSucceeds(t *testing.T, w world) {
	job := register(t, w.process, obj{"topic": "cancel-run", "url": w.to("/gate")})
	w.receiver.arrives(t, job.ID, 1)
	marked := call[view](t, w.process, http.MethodDelete, "/v1/jobs/"+job.ID, nil, http.StatusAccepted)
	require.True(t, marked.CancelRequested)
	w.receiver.open(job.ID)
	await(t, w.process, job.ID, "delivered")
}

func cancelWhileItFails(t *testing.T, w world) {
	job := register(t, w.process,
		obj{"topic": "cancel-fail", "url": w.to("/hold/1m"), "timeout": "500ms", "ladder": []string{"1ms"}})
	w.receiver.arrives(t, job.ID, 1)
	call[view](t, w.process, http.MethodDelete, "/v1/jobs/"+job.ID, nil, http.StatusAccepted)
	await(t, w.process, job.ID, "cancelled")
	require.Len(t, w.receiver.of(job.ID), 1)
}

func cancelAfter(t *testing.T, w world) {
	job := register(t, w.process, obj{"topic": "cancel-late", "url": w.to("/ok")})
	await(t, w.process, job.ID, "delivered")
	call[obj](t, w.process, http.MethodDelete, "/v1/jobs/"+job.ID, nil, http.StatusConflict)
	call[obj](t, w.process, http.MethodDelete, "/v1/jobs/no-such-job", nil, http.StatusNotFound)
}

func edits(t *testing.T, w world) {
	job := register(t, w.process, obj{"topic": "edit", "url": w.to("/status/500"), "delay": "1h", "body": "old"})
	edited := call[view](t, w.process, http.MethodPatch, "/v1/jobs/"+job.ID,
		obj{"url": w.to("/ok"), "body": "new", "delay": "50ms"}, http.StatusOK)
	require.Greater(t, edited.Version, job.Version)
	require.Equal(t, `"new"`, w.receiver.arrives(t, job.ID, 1)[0].body)
	done := await(t, w.process, job.ID, "delivered")
	require.Contains(t, done.changes(), "edited")
	call[obj](t, w.process, http.MethodPatch, "/v1/jobs/"+job.ID, obj{"delay": "1s"}, http.StatusConflict)
	call[obj](t, w.process, http.MethodPatch, "/v1/jobs/"+job.ID, obj{"topic": "other"}, http.StatusUnprocessableEntity)
}

func runsNow(t *testing.T, w world) {
	job := register(t, w.process, obj{"topic": "run", "url": w.to("/ok"), "delay": "1h"})
	call[view](t, w.process, http.MethodPost, "/v1/jobs/"+job.ID+"/run", nil, http.StatusOK)
	w.receiver.arrives(t, job.ID, 1)
	require.Contains(t, await(t, w.process, job.ID, "delivered").changes(), "run")
}

func revives(t *testing.T, w world) {
	job := register(t, w.process,
		obj{"topic": "revive", "url": w.to("/fail/3"), "ladder": []string{"10ms"}, "retries": 1})
	require.Equal(t, 2, await(t, w.process, job.ID, "dead").AttemptsMade)
	call[view](t, w.process, http.MethodPost, "/v1/jobs/"+job.ID+"/revive", nil, http.StatusOK)
	done := await(t, w.process, job.ID, "delivered")
	require.Equal(t, 1, done.Generation)
	require.Equal(t, 4, done.AttemptsMade, "attempt numbers go on")
	require.Equal(t, "4", w.receiver.of(job.ID)[3].attempt)
}

func pauses(t *testing.T, w world) {
	call[obj](t, w.process, http.MethodPut, "/v1/topics/pause", obj{}, http.StatusOK)
	call[obj](t, w.process, http.MethodPost, "/v1/topics/pause/pause", nil, http.StatusOK)
	job := register(t, w.process, obj{"topic": "pause", "url": w.to("/ok")})
	// Another topic's job, registered later, arrives: the paused one was passed over.
	other := register(t, w.process, obj{"topic": "pause-other", "url": w.to("/ok"), "delay": "500ms"})
	w.receiver.arrives(t, other.ID, 1)
	require.Empty(t, w.receiver.of(job.ID))
	call[obj](t, w.process, http.MethodPost, "/v1/topics/pause/resume", nil, http.StatusOK)
	w.receiver.arrives(t, job.ID, 1)
}

func sameID(t *testing.T, w world) {
	request := obj{"id": "same-1", "topic": "same", "url": w.to("/ok"), "delay": "100ms"}
	register(t, w.process, request)
	call[view](t, w.process, http.MethodPost, "/v1/jobs", request, http.StatusOK)
	await(t, w.process, "same-1", "delivered")
	again := call[view](t, w.process, http.MethodPost, "/v1/jobs", request, http.StatusOK)
	require.Equal(t, "delivered", again.State)
	require.Len(t, w.receiver.of("same-1"), 1)
	request["delay"] = "101ms"
	call[obj](t, w.process, http.MethodPost, "/v1/jobs", request, http.StatusConflict)
}

// batchAnswer is the response to a batch, with one result per item.
type batchAnswer struct {
	Results []struct {
		ID     string `json:"id"`
		Status int    `json:"status"`
		Error  obj    `json:"error"`
	} `json:"results"`
}

func batch(t *testing.T, w world) {
	answer := call[batchAnswer](t, w.process, http.MethodPost, "/v1/batch", obj{"jobs": []obj{
		{"topic": "batch", "url": w.to("/ok")},
		{"topic": "batch", "url": "gopher://nowhere"},
		{"topic": "batch", "url": w.to("/ok")},
	}}, http.StatusOK)
	require.Len(t, answer.Results, 3)
	require.Equal(t, http.StatusCreated, answer.Results[0].Status)
	require.Equal(t, http.StatusUnprocessableEntity, answer.Results[1].Status)
	require.NotEmpty(t, answer.Results[1].Error)
	require.Equal(t, http.StatusCreated, answer.Results[2].Status)
	await(t, w.process, answer.Results[0].ID, "delivered")
	await(t, w.process, answer.Results[2].ID, "delivered")
}
