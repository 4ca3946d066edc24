package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Idle connections to the API take no descriptors from deliveries, and do not keep other clients out.
func TestDescriptors_AreKeptForDeliveries(t *testing.T) {
	t.Parallel()
	limited := filepath.Join(t.TempDir(), "ringback")
	require.NoError(t,
		os.WriteFile(limited, fmt.Appendf(nil, "#!/bin/sh\nulimit -n 512 && exec '%s' \"$@\"\n", binary), 0o700))
	p := startProgram(t, limited, newSQLite(t))
	require.Contains(t, p.log.text(), `"api_connections":128`)
	require.Contains(t, p.log.text(), "file descriptor limit is too low")

	receiver := newReceiver(t)
	for i := range 700 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		if i%2 == 0 {
			_, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
			require.NoError(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
		}
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	require.NoError(t, err)
	require.Less(t, len(open), 256, "half of the descriptors are left")

	jobs := make([]obj, 200)
	for i := range jobs {
		jobs[i] = obj{"id": fmt.Sprint("j", i), "url": receiver.URL + "/ok", "retries": 0, "topic": "many"}
	}
	call[obj](t, p, http.MethodPost, "/v1/batch", obj{"jobs": jobs}, http.StatusOK)
	eventually(t, func() bool {
		return call[struct{ Totals counts }](t, p, http.MethodGet, "/v1/stats", nil,
			http.StatusOK).Totals.Delivered == int64(len(jobs))
	})
}
