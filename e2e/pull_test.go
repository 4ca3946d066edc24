package e2e

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
)

// leases are leased jobs, as in an answer.
type leases struct {
	Items []struct {
		ID    string `json:"id"`
		Lease string `json:"lease"`
	} `json:"items"`
	Done, Retry, Dead, Extend []struct {
		ID     string `json:"id"`
		Result string `json:"result"`
	}
}

// moment is how far a request has got when the process is killed.
type moment string

const (
	begun    moment = "begun"    // half of the body is sent: nothing is executed
	answered moment = "answered" // it is executed, and the consumer loses the answer
	sent     moment = "sent"     // all of it is sent: it is executed, or not
)

// interrupted sends a request of a consumer over a new connection, as far as the moment says, and returns the answer if
// there is one. What the process does not answer, no other that gets its port can answer either.
func interrupted(t *testing.T, p *process, m moment, body obj) (answer leases) {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	request := fmt.Sprintf("POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
		"application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	if m == begun {
		request = request[:len(request)-len(text)/2]
	}
	_, err = conn.Write([]byte(request))
	require.NoError(t, err)
	if m == answered {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
		require.NoError(t, resp.Body.Close())
	}
	return answer
}

// The process is killed while consumers lease, extend and settle, in each moment of each step. Each job is delivered
// once. Redis keeps leases: a report that was not executed is executed when it is repeated, one that was is answered as
// the first time, and an extension lasts. With SQLite they end with the process, and the jobs come back. Late reports
// change nothing.
func TestPull_KilledInEachStep(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		const leased, kept = "8s", "10m"
		p := start(t, store)
		call[obj](t, p, http.MethodPut, "/v1/topics/pulled", obj{"deliver": "pull"}, http.StatusOK)
		next := func(lane, lease string) obj { // waits until the lane has a job
			return obj{"topic": "pulled", "lanes": []string{lane}, "wait": "60s", "lease": lease}
		}
		take := func(lane, lease string) string {
			got := call[leases](t, p, http.MethodPost, "/v1/leases", obj{"next": next(lane, lease)}, http.StatusOK)
			require.Len(t, got.Items, 1, lane)
			return got.Items[0].Lease
		}
		done := func(lease string) obj { return obj{"done": []obj{{"lease": lease}}} }
		report := func(lease string) string {
			return call[leases](t, p, http.MethodPost, "/v1/leases", done(lease), http.StatusOK).Done[0].Result
		}

		moments := []moment{begun, answered, sent, sent, sent}
		lane := func(step string, n int) string { return fmt.Sprint(step, "-", n, "-", moments[n]) }
		held := make(map[string]string) // leases, by lane; those of requests for a lease come with the answer
		for _, step := range []string{"extend", "settle", "lease"} {
			for n := range moments {
				register(t, p, obj{"id": lane(step, n), "topic": "pulled", "lane": lane(step, n)})
			}
		}
		for n := range moments {
			held[lane("settle", n)] = take(lane("settle", n), kept)
			held[lane("extend", n)] = take(lane("extend", n), leased)
		}
		for n, m := range moments { // those that are sent last are executed while the process dies
			extended := interrupted(t, p, m, obj{"extend": []obj{{"lease": held[lane("extend", n)], "for": kept}}})
			settled := interrupted(t, p, m, done(held[lane("settle", n)]))
			items := interrupted(t, p, m, obj{"next": next(lane("lease", n), leased)}).Items
			if m == answered {
				require.Equal(t, "ok", extended.Extend[0].Result)
				require.Equal(t, "ok", settled.Done[0].Result)
				require.Len(t, items, 1)
				held[lane("lease", n)] = items[0].Lease
			}
		}
		p.kill()
		p = start(t, store)

		lasts := !strings.HasPrefix(store, "sqlite:") // leases do
		once, twice := []string{"delivered"}, []string{"lost", "delivered"}
		requireAttempts := func(id string, m moment, whenBegun, whenAnswered []string) {
			found, attempts := get(t, p, id), []string(nil)
			require.Equal(t, "delivered", found.State, id)
			for _, a := range found.Attempts {
				attempts = append(attempts, cmp.Or(a.Verdict, a.Kind))
			}
			require.Contains(t, map[moment][][]string{
				begun: {whenBegun}, answered: {whenAnswered},
				sent: {once, twice},
			}[m], attempts, id)
		}
		comesBack := twice
		if lasts {
			comesBack = once
		}
		for n, m := range moments {
			id := lane("settle", n)
			result := report(held[id])
			if lasts {
				require.Equal(t, "ok", result, id)
			} else if get(t, p, id).State != "delivered" {
				require.Equal(t, "lost", result, id)
				require.Equal(t, "ok", report(take(id, kept)), id)
			}
			requireAttempts(id, m, comesBack, once)
		}
		for n, m := range moments {
			id := lane("lease", n)
			require.Equal(t, "ok", report(take(id, kept)), id)
			requireAttempts(id, m, once, twice)
		}
		// what they were leased for is over, as it is for those above, which were leased later
		for n, m := range moments {
			id := lane("extend", n)
			if m == begun || report(held[id]) != "ok" {
				require.Equal(t, "ok", report(take(id, kept)), id)
			}
			requireAttempts(id, m, twice, comesBack)
		}
		for _, id := range []string{lane("lease", 1), lane("extend", 0)} {
			lease := held[id]
			late := call[leases](t, p, http.MethodPost, "/v1/leases", obj{
				"done": []obj{{"lease": lease}}, "dead": []obj{{"lease": lease, "reason": "late"}},
				"extend": []obj{{"lease": lease, "for": "1h"}},
			}, http.StatusOK)
			require.Equal(t, []string{"lost", "lost", "lost"},
				[]string{late.Done[0].Result, late.Dead[0].Result, late.Extend[0].Result}, id)
			requireAttempts(id, sent, nil, nil)
		}
		sum := count(t, p)
		require.EqualValues(t, 3*len(moments), sum.Delivered, sum.String())
	})
}

func TestPull_ManyClientsWaitOnOneConnection(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := start(t, server.URL())
	call[obj](t, p, http.MethodPut, "/v1/topics/pulled",
		obj{"deliver": "pull", "lane_concurrency": 2000}, http.StatusOK)
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	eventually(t, func() bool { return info(t, c, "clients", "blocked_clients") == 3 })
	clients := testkit.Of(200, 1000)
	require.Equal(t, "1778", metric(t, p, "ringback_max_waiting_requests"),
		"raise the hard limit of open files to 14,300 or more (ulimit -Hn)")
	var waiting sync.WaitGroup
	var leased, failed atomic.Int64
	for range clients {
		waiting.Go(func() {
			status, answer, err := send(p.url, http.MethodPost, "/v1/topics/pulled/lease",
				obj{"wait": "60s", "lease": "60s"})
			var got leases
			if err != nil || status != http.StatusOK || json.Unmarshal(answer, &got) != nil || len(got.Items) != 1 {
				failed.Add(1)
				return
			}
			leased.Add(1)
		})
	}
	eventually(t, func() bool { return metric(t, p, "ringback_lease_clients") == strconv.Itoa(clients) })
	eventually(t, func() bool { return info(t, c, "clients", "blocked_clients") == 4 },
		"between two waits none blocks")
	items := make([]obj, clients)
	for n := range items {
		items[n] = obj{"topic": "pulled", "lane": fmt.Sprint("lane-", n%20)}
	}
	call[obj](t, p, http.MethodPost, "/v1/batch", obj{"jobs": items}, http.StatusOK)
	waiting.Wait()
	require.Zero(t, failed.Load())
	require.EqualValues(t, clients, leased.Load())
}
