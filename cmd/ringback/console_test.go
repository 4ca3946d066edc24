package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// serving runs a command that serves until the test ends, and returns the URL of its server.
func serving(t *testing.T, env []string, args ...string) string {
	t.Helper()
	var stdout, stderr testkit.Log
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int)
	args = append(args, "--addr=127.0.0.1:0", "--store=sqlite:"+filepath.Join(t.TempDir(), "jobs.db"), "--proxy=none")
	go func() { ended <- run(ctx, args, &stdout, &stderr, env) }()
	t.Cleanup(func() {
		stop()
		require.Equal(t, exitOK, <-ended, stderr.String())
	})
	var server string
	require.Eventually(t, func() bool {
		addr := regexp.MustCompile(`msg=listening addr=(\S+)`).FindStringSubmatch(stderr.String())
		if addr != nil {
			server = "http://" + addr[1]
		}
		return addr != nil
	}, 20*time.Second, time.Millisecond, "it does not listen")
	return server
}

func TestConsole_ShowsSettingsAndChecksOfTheProcess(t *testing.T) {
	file := writeConfig(t, "max_body: 2MiB")
	server := serving(t, []string{"RINGBACK_GRACE=9s", "RINGBACK_SECRET_KEY=" + secretKeyOfTests},
		"serve", "--config="+file)
	page := ask(t, http.MethodGet, server+"/console/settings/in-force")
	require.Contains(t, page, `<td class="mono">2MiB</td><td>`+file+`:1</td>`)
	require.Contains(t, page, `<td class="mono">9s</td><td>$RINGBACK_GRACE</td>`)
	require.Contains(t, page, `<td class="mono">is set</td><td>$RINGBACK_SECRET_KEY</td>`)
	require.NotContains(t, page, secretKeyOfTests)

	page = ask(t, http.MethodPost, server+"/console/settings/checks")
	require.Contains(t, page, "is writable, and readable by its owner only")
	require.Regexp(t, `sqlite-integrity</span></th><td><span class="pill ok">`, page)
	require.NotContains(t, page, "server-ready")
}

func TestConsole_ShowsTheInboxOfDev(t *testing.T) {
	server := serving(t, nil, "dev", "--inbox=127.0.0.1:0")
	page := ask(t, http.MethodGet, server+"/console/try")
	to := regexp.MustCompile(`name="url" value="(http://127.0.0.1:\d+)/"`).FindStringSubmatch(page)
	require.Len(t, to, 2)
	ask(t, http.MethodPost, server+"/console/try/sign", "topic", "order")
	page = ask(t, http.MethodPost, server+"/console/try", "topic", "order", "url", to[1]+"/hello", "body",
		`{"n": 12345678901234567890}`)
	job := regexp.MustCompile(`jobs/(\w+)">`).FindStringSubmatch(page)
	require.Len(t, job, 2)
	require.Eventually(t, func() bool {
		page = ask(t, http.MethodGet, server+"/console/try?job="+job[1])
		return strings.Contains(page, "was delivered to")
	}, 20*time.Second, 10*time.Millisecond)
	require.Contains(t, page, "POST /hello")
	require.Contains(t, page, "{&#34;n&#34;: 12345678901234567890}")
	require.Regexp(t, `<b>this job</b> <span class="mono">POST /hello</span> was answered 200\s+<br>id `+
		`.*\s+<br><span class="pill ok">signature verified</span> with the secret [0-9a-f]{16}`, page)
	require.NotContains(t, page, "whsec_")
}

// secretKeyOfTests encrypts nothing of worth.
const secretKeyOfTests = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// ask returns the page that a request leads to.
func ask(t *testing.T, method, to string, fields ...string) string {
	t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	req, err := http.NewRequestWithContext(t.Context(), method, to, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}
