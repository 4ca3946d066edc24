package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// peakMemory returns the peak resident memory of a process, in bytes.
func peakMemory(t testing.TB, p *process) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(status), "VmHWM:")
	require.True(t, ok)
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return kib << 10
}

func TestUploads_AtOnceFitAPod(t *testing.T) {
	t.Parallel()
	p := start(t, newSQLite(t))
	job := `{"url": "http://127.0.0.1:1/", "delay": "1h", "body_text": "` + strings.Repeat("x", 250_000) + `"}`
	body := `{"jobs": [` + strings.Repeat(job+",", 16<<20/(len(job)+1)-1) + job + `]}`
	const clients = 12
	answers := make(chan *http.Response, clients)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			resp, err := client.Post(p.url+"/v1/batch", "application/json", strings.NewReader(body))
			if err == nil {
				answers <- resp
				_ = resp.Body.Close()
			}
		})
	}
	all.Wait()
	close(answers)
	statuses := make(map[int]int)
	for resp := range answers {
		statuses[resp.StatusCode]++
		if resp.StatusCode == http.StatusServiceUnavailable {
			require.NotEmpty(t, resp.Header.Get("Retry-After"))
		}
	}
	require.Positive(t, statuses[http.StatusOK])
	require.Equal(t, clients, statuses[http.StatusOK]+statuses[http.StatusServiceUnavailable],
		"every client gets an answer: %v", statuses)
	require.Less(t, peakMemory(t, p), int64(384<<20))
	call[obj](t, p, http.MethodPost, "/v1/batch", obj{"jobs": []obj{}}, http.StatusOK)
}
