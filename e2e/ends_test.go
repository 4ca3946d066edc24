package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// callback is a received callback about a job's end.
type callback struct {
	Type string
	Job  struct {
		ID, Topic, Lane, URL, State, Reason string
		AttemptsMade                        int `json:"attempts_made"`
		Body                                any
	}
	Attempt *struct {
		Status int
	}
}

func callbackOf(t testing.TB, a arrival) callback {
	t.Helper()
	var what callback
	require.NoError(t, json.Unmarshal([]byte(a.body), &what), a.body)
	return what
}

func TestCallback_IsSentForEveryEnd(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		p, r, owner := start(t, store), newReceiver(t), newReceiver(t)
		call[obj](t, p, http.MethodPut, "/v1/topics/notifying", obj{
			"ladder": []string{"10ms"}, "on_dead": obj{"url": owner.URL + "/fail/1", "headers": obj{"X-Owner": "shop"}},
		}, http.StatusOK)
		call[obj](t, p, http.MethodPut, "/v1/topics/_callbacks", obj{"ladder": []string{"20ms"}}, http.StatusOK)
		secret := addSecret(t, p, "/v1/topics/notifying", obj{}).Secret

		delivered := register(t, p, obj{
			"topic": "notifying", "url": r.URL + "/ok?token=x", "body": obj{"n": 1}, "on_delivered": owner.URL + "/ok",
		})
		dead := register(t, p, obj{"topic": "notifying", "url": r.URL + "/status/404", "body": obj{"n": 2}})
		call[obj](t, p, http.MethodPost, "/v1/topics/notifying/lanes/paused/pause", obj{}, http.StatusOK)
		expired := register(t, p,
			obj{"topic": "notifying", "lane": "paused", "url": r.URL + "/ok", "expires_in": "50ms"})
		silent := register(t, p, obj{"topic": "notifying", "url": r.URL + "/ok"})

		a := owner.arrives(t, "rb:"+delivered.ID+":0", 1)[0]
		what := callbackOf(t, a)
		require.Equal(t, "job.delivered", what.Type)
		require.Equal(t, delivered.ID, what.Job.ID)
		require.Equal(t, r.URL+"/ok", what.Job.URL, "without the query")
		require.Nil(t, what.Job.Body)
		require.Equal(t, 1, what.Job.AttemptsMade)
		require.Equal(t, 200, what.Attempt.Status)
		require.Equal(t, hmacHeaders(secret, a.id, unix(t, a.header.Get("webhook-timestamp")), a.body), headersOf(a))

		again := owner.arrives(t, "rb:"+dead.ID+":0", 2) // its first attempt fails
		require.Equal(t, again[0].body, again[1].body)
		require.Equal(t, "shop", again[1].header.Get("X-Owner"))
		what = callbackOf(t, again[1])
		require.Equal(t, []any{"job.dead", "exhausted", 2, 404},
			[]any{what.Type, what.Job.Reason, what.Job.AttemptsMade, what.Attempt.Status})

		what = callbackOf(t, owner.arrives(t, "rb:"+expired.ID+":0", 1)[0])
		require.Equal(t, "expired", what.Job.Reason)
		require.Nil(t, what.Attempt)

		await(t, p, silent.ID, "delivered")
		require.Empty(t, owner.of("rb:"+silent.ID+":0"))
		require.Equal(t, "delivered", await(t, p, again[0].id, "delivered").State, "a callback is a job with a history")
		require.Equal(t, again[0].id,
			call[obj](t, p, http.MethodGet, "/v1/jobs/"+dead.ID, nil, http.StatusOK)["callback_id"])

		// A revival starts a new generation with a callback at its end.
		call[view](t, p, http.MethodPost, "/v1/jobs/"+dead.ID+"/revive", nil, http.StatusOK)
		owner.arrives(t, "rb:"+dead.ID+":1", 2)
		require.Len(t, owner.of("rb:"+dead.ID+":0"), 2, "sent once")
	})
}

// A killed process loses no callback, and repeats only callbacks in flight.
func TestCrash_LosesNoCallback(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		p, r, owner := start(t, store), newReceiver(t), newReceiver(t)
		l := newLoad(t, p, 8, paced(t, 2*time.Millisecond, func(int) obj {
			return obj{
				"topic": "notifying", "url": r.URL + "/ok", "timeout": "2s",
				"on_delivered": obj{"url": owner.URL + "/ok", "timeout": "2s"},
			}
		}))
		for range testkit.Of(2, 3) {
			for range 20 {
				owner.grows(t)
			}
			p.kill()
			p = start(t, store)
			l.url.Store(&p.url)
		}
		l.end()
		ids := l.names()
		for _, id := range ids {
			owner.until(t, "the callback of "+id, func() bool { return len(owner.byID["rb:"+id+":0"]) > 0 })
		}
		ended(t, p)
		t.Logf("%d jobs, %d requests to their owner", len(ids), owner.size())
	})
}

func TestDeadLetters_ListReviveAndPurge(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		p, r := start(t, store), newReceiver(t)
		type list struct {
			Items []struct {
				view
				LastStatus int `json:"last_status"`
			}
			NextCursor string `json:"next_cursor"`
		}
		for _, topic := range []string{"a", "b"} {
			call[obj](t, p, http.MethodPut, "/v1/topics/"+topic, obj{"retries": 0}, http.StatusOK)
			for n := range 12 {
				register(t, p, obj{
					"topic": topic, "lane": fmt.Sprintf("lane-%d", n%3),
					"url": fmt.Sprintf("%s/status/%d", r.URL, 404+96*(n%2)),
				})
			}
		}
		require.EqualValues(t, 24, ended(t, p).Dead)

		page := call[list](t, p, http.MethodGet, "/v1/dead?topic=a&status=500&lane=lane-1", nil, http.StatusOK)
		require.Len(t, page.Items, 2)
		for _, item := range page.Items {
			require.Equal(t, []any{"exhausted", 500}, []any{item.Reason, item.LastStatus})
		}
		seen, cursor := 0, ""
		for {
			page = call[list](t, p, http.MethodGet, "/v1/dead?limit=5&cursor="+cursor, nil, http.StatusOK)
			seen += len(page.Items)
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		require.Equal(t, 24, seen)

		filter := obj{"topic": "a", "status": 500, "dry_run": true}
		require.EqualValues(t, 6, call[obj](t, p, http.MethodPost, "/v1/dead/revive", filter, http.StatusOK)["matched"])
		require.EqualValues(t, 24, count(t, p).Dead, "a dry run changes nothing")
		filter["dry_run"], filter["url"], filter["rate"] = false, r.URL+"/ok", "20/s"
		began := time.Now()
		require.Equal(t, 6, work(t, p, "/v1/dead/revive", filter).Done)
		eventually(t, func() bool { return count(t, p).Delivered == 6 })
		require.GreaterOrEqual(t, time.Since(began), 240*time.Millisecond, "six at 20 a second are not sent at once")
		require.EqualValues(t, 18, count(t, p).Dead)

		require.Equal(t, 6, work(t, p, "/v1/dead/purge", obj{"topic": "a"}).Done)
		require.Empty(t, call[list](t, p, http.MethodGet, "/v1/dead?topic=a", nil, http.StatusOK).Items)
		count(t, p)
		status, answer, err := send(p.url, http.MethodPost, "/v1/dead/purge", obj{})
		require.NoError(t, err)
		require.Equal(t, http.StatusUnprocessableEntity, status, "%s", answer)
		require.Equal(t, 12, work(t, p, "/v1/dead/purge", obj{"all": true}).Done)
	})
}

// All jobs for a lost host end at their max_age, with a reason and a callback.
func TestMaxAge_EndsJobsOfADeadHostWithCallbacks(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		jobs := testkit.Of(1000, 5000)
		p, owner := start(t, store), newReceiver(t)
		gone := newReceiver(t)
		url := gone.URL + "/ok"
		gone.Close()
		call[obj](t, p, http.MethodPut, "/v1/topics/gone", obj{
			"max_age": "10s", "breaker": obj{"failures": 10, "open": "1s"}, "on_dead": owner.URL + "/ok",
			"ladder": []string{"1s"}, "retries": 1000,
		}, http.StatusOK)
		all := make([]obj, jobs)
		for i := range all {
			all[i] = obj{"topic": "gone", "url": url, "id": fmt.Sprintf("gone-%d", i)}
		}
		// A few first: on a busy machine all may have ended when the registration of many is answered.
		call[batchAnswer](t, p, http.MethodPost, "/v1/batch", obj{"jobs": all[:100]}, http.StatusOK)
		eventually(t, func() bool {
			_, answer, err := send(p.url, http.MethodGet, "/v1/topics/gone/stats", nil)
			return err == nil && strings.Contains(string(answer), `"breaker":"open"`)
		}, "its lane shows an open breaker")
		call[batchAnswer](t, p, http.MethodPost, "/v1/batch", obj{"jobs": all[100:]}, http.StatusOK)
		owner.until(t, "a callback for each", func() bool { return len(owner.byID) == jobs })
		sum := ended(t, p)
		require.EqualValues(t, jobs, sum.Dead)
		made := 0
		for i := range jobs {
			a := owner.of(fmt.Sprintf("rb:gone-%d:0", i))
			require.NotEmpty(t, a)
			what := callbackOf(t, a[0])
			require.Equal(t, []any{"job.dead", "max_age"}, []any{what.Type, what.Job.Reason})
			made += what.Job.AttemptsMade
		}
		t.Logf("%d jobs made %d attempts", jobs, made)
		require.Less(t, made, jobs/10, "the breaker spared the host, and the retries")
	})
}
