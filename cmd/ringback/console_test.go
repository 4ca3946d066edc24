package main

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testlog"
)

func TestConsole_ShowsSettingsAndChecksOfTheProcess(t *testing.T) {
	dir := t.TempDir()
	file := writeConfig(t, "max_body: 2MiB")
	var stdout, stderr testlog.Log
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		ended <- run(ctx, []string{"serve", "--addr=127.0.0.1:0", "--store=sqlite:" + filepath.Join(dir, "jobs.db"), "--config=" + file, "--proxy=none"},
			&stdout, &stderr, []string{"RINGBACK_GRACE=9s", "RINGBACK_SECRET_KEY=" + secretKeyOfTests})
	}()
	defer func() {
		stop()
		require.Equal(t, exitOK, <-ended)
	}()
	var server string
	require.Eventually(t, func() bool {
		addr := regexp.MustCompile(`msg=listening addr=(\S+)`).FindStringSubmatch(stderr.String())
		if addr != nil {
			server = "http://" + addr[1]
		}
		return addr != nil
	}, 20*time.Second, time.Millisecond)

	page := ask(t, http.MethodGet, server+"/console/settings/in-force")
	require.Contains(t, page, `<td class="mono">2MiB</td><td>`+file+`:1</td>`)
	require.Contains(t, page, `<td class="mono">9s</td><td>$RINGBACK_GRACE</td>`)
	require.Contains(t, page, `<td class="mono">is set</td><td>$RINGBACK_SECRET_KEY</td>`)
	require.NotContains(t, page, secretKeyOfTests)

	page = ask(t, http.MethodPost, server+"/console/settings/checks")
	require.Contains(t, page, "uses the database")
	require.Regexp(t, `sqlite-integrity</span></th><td><span class="pill ok">`, page)
	require.NotContains(t, page, "server-ready")
}

// secretKeyOfTests encrypts nothing of worth.
const secretKeyOfTests = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// ask returns the page that a request leads to.
func ask(t *testing.T, method, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}
