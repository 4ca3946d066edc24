package e2e

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// liveEvent is an event of /v1/stream.
type liveEvent struct {
	name string

	ID, Topic, Kind, Verdict, Process, Code string
}

// watchLive requests a process's stream and reads its events until it ends.
func watchLive(t *testing.T, p *process, query string) <-chan liveEvent {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/v1/stream"+query, nil)
	require.NoError(t, err)
	resp, err := new(http.Client).Do(req) // without a timeout
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	in := bufio.NewReader(resp.Body)
	first, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "retry: 2000\n", first)
	events := make(chan liveEvent, 100)
	go func() {
		defer close(events)
		var e liveEvent
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				e = liveEvent{name: strings.TrimSpace(name)}
			} else if data, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(data), &e) == nil {
				events <- e
			}
		}
	}()
	return events
}

func TestStream_ShowsWhatHappensInAllProcesses(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		r := newReceiver(t)
		var shown, worker *process
		if strings.HasPrefix(store, "redis") {
			shown, worker = start(t, store, "--roles=api", "--grace=10m"), start(t, store, "--roles=worker")
		} else {
			shown = start(t, store, "--grace=10m")
			worker = shown
		}
		all, none := watchLive(t, shown, ""), watchLive(t, shown, "?topic=other")
		register(t, shown, obj{"id": "a", "topic": "orders", "url": r.URL + "/ok"})
		seen := make(map[string]liveEvent)
		for len(seen) < 2 {
			select {
			case e := <-all:
				require.Equal(t, []string{"a", "orders"}, []string{e.ID, e.Topic})
				seen[e.name] = e
			case <-time.After(testkit.MustCome):
				require.FailNow(t, "events are missing", "%v\n%s", seen, worker.log.text())
			}
		}
		require.Equal(t, "created", seen["change"].Kind)
		require.Equal(t, "delivered", seen["attempt"].Verdict)

		code, took := shown.terminate()
		require.Zero(t, code)
		require.Less(t, took, testkit.MustCome, "an open stream must not delay the stop")
		require.Equal(t, "shutting_down", (<-all).Code)
		require.Equal(t, "shutting_down", (<-none).Code, "without an event of another topic")
		_, open := <-all
		require.False(t, open)
	})
}
