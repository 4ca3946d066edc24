package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inNamespace makes a request as the root, in a namespace, and decodes the answer.
func inNamespace(t testing.TB, p *process, namespace, method, path string, body obj, into any) (status int) {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(string(text)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Ringback-Namespace", namespace)
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(answer, into), string(answer))
	return resp.StatusCode
}

// The namespace shop is on a Redis beside the SQLite store main.
func TestStores_OneThatIsDownLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	redis, r, main := durableRedis(t), newReceiver(t), newSQLite(t)
	begin := func() *process { return start(t, main, "--store=eu="+redis.URL()) }
	p := begin()
	call[obj](t, p, http.MethodPut, "/v1/namespaces/shop", obj{"store": "eu"}, http.StatusOK)

	accepted := make(map[string]int) // by namespace
	register := func(namespace, id, delay string) {
		t.Helper()
		var answer obj
		status := inNamespace(t, p, namespace, http.MethodPost, "/v1/jobs",
			obj{"id": id, "url": r.URL + "/ok", "delay": delay, "ladder": []string{"100ms"}}, &answer)
		require.Equal(t, http.StatusCreated, status, "%v", answer)
		accepted[namespace]++
	}
	registerAll := func(namespace, round string, delays ...string) (ids []string) {
		t.Helper()
		for i := range 20 {
			id := fmt.Sprintf("%s-%s-%d", namespace, round, i)
			register(namespace, id, delays[i%len(delays)])
			ids = append(ids, id)
		}
		return ids
	}
	arrive := func(ids []string) {
		t.Helper()
		for _, id := range ids {
			r.arrives(t, id, 1)
		}
	}
	// euIsDown checks that main serves its namespace while eu is down.
	euIsDown := func(round, detail string) {
		t.Helper()
		var ready struct {
			Stores []struct {
				Name   string
				Ready  bool
				Detail string
			}
		}
		eventually(t, func() bool {
			return inNamespace(t, p, "default", http.MethodGet, "/readyz", nil, &ready) == http.StatusOK &&
				!ready.Stores[1].Ready && strings.Contains(ready.Stores[1].Detail, detail) // after a start not at once
		}, "%s: %+v", detail, &ready)
		require.True(t, ready.Stores[0].Ready)
		arrive(registerAll("default", round, "0s", "100ms"))
		var problem struct{ Code string }
		for _, path := range []string{"/v1/jobs/shop-same", "/v1/stats", "/v1/topics"} {
			status := inNamespace(t, p, "shop", http.MethodGet, path, nil, &problem)
			require.Equal(t, http.StatusServiceUnavailable, status, "%s: %v", path, problem)
			require.Equal(t, "store_unavailable", problem.Code)
		}
		status := inNamespace(t, p, "shop", http.MethodPost, "/v1/jobs", obj{"url": r.URL + "/ok"}, &problem)
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Equal(t, "store_unavailable", problem.Code)
	}
	// euIsBack checks that eu delivers what it had accepted, and that each store has the jobs of its namespace alone.
	euIsBack := func(waiting []string) {
		t.Helper()
		redis.Restart()
		arrive(waiting)
		for namespace, n := range accepted {
			var stats struct{ Totals counts }
			eventually(t, func() bool {
				status := inNamespace(t, p, namespace, http.MethodGet, "/v1/stats", nil, &stats)
				return status == http.StatusOK && stats.Totals.Delivered == int64(n)
			}, "%s of %d: %+v", namespace, n, stats)
			require.EqualValues(t, n, stats.Totals.Registered)
		}
	}

	register("default", "same", "0s")
	register("shop", "same", "0s")
	r.arrives(t, "same", 2)
	waiting := registerAll("shop", "one", "0s", "300ms")
	redis.Kill()
	euIsDown("one", "redis")
	euIsBack(waiting)

	waiting = registerAll("shop", "two", "1s") // no attempt is in flight, whose lease would have to expire
	redis.Kill()
	p.kill()
	p = begin()
	euIsDown("two", "could not be opened yet")
	euIsBack(waiting)

	refuses(t, 1, "the data have 1 shards, not 8", nil,
		"serve", "--addr=127.0.0.1:0", "--store="+newSQLite(t), "--store=eu="+redis.URL(), "--shards=eu=8")
}
