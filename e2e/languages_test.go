package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The programs of docs/languages.md, as they stand there but for the receiver's address. The first request of each is
// answered 503.
func TestDocs_ProgramsRegisterWaitAndPull(t *testing.T) {
	t.Parallel()
	for language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			p, r := start(t, newSQLite(t)), newReceiver(t)
			target, err := url.Parse(p.url)
			require.NoError(t, err)
			var refused, repeated atomic.Int64
			proxy, forward := http.NewServeMux(), httputil.NewSingleHostReverseProxy(target)
			proxy.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
				assert.Equal(t, "Bearer s3cret", req.Header.Get("Authorization"))
				if refused.CompareAndSwap(0, time.Now().UnixNano()) {
					w.Header().Set("Retry-After", "2")
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				repeated.CompareAndSwap(0, time.Now().UnixNano())
				req.Header.Del("Authorization") // the server has no tokens
				forward.ServeHTTP(w, req)
			})
			front := httptest.NewServer(proxy)
			t.Cleanup(front.Close)
			call[obj](t, p, http.MethodPut, "/v1/topics/reports", obj{"deliver": "pull", "retries": 0}, http.StatusOK)
			for id, month := range map[string]int{"july": 7, "none": 13} {
				register(t, p, obj{"id": id, "topic": "reports", "body": obj{"month": month}})
			}

			const shown = "http://127.0.0.1:8081/hooks/close"
			text := blockAfter(t, "../docs/languages.md", "\n## "+language+"\n")
			require.Equal(t, 1, strings.Count(text, shown))
			run := func(url string) (*exec.Cmd, func() string) {
				env := cleanEnv("RINGBACK_SERVER="+front.URL, "RINGBACK_TOKEN=s3cret")
				return startDocProgram(t, language, strings.Replace(text, shown, url, 1), env)
			}
			_, stop := run(r.URL + "/ok")
			require.JSONEq(t, `{"order": 4711}`, r.arrives(t, "close-4711", 1)[0].body)
			require.Greater(t, time.Duration(repeated.Load()-refused.Load()), 1900*time.Millisecond, "Retry-After")
			for id, state := range map[string]string{"july": "delivered", "none": "dead"} {
				eventually(t, func() bool { return waited(p, id) == state }, id)
			}
			output := stop()
			require.Contains(t, output, "close-4711 delivered\n")
			require.Contains(t, output, "report of month 7\n")

			cmd, stop := run(r.URL + "/status/200") // another job
			require.Error(t, cmd.Wait())
			require.Contains(t, stop(), "id_taken")
		})
	}
}
