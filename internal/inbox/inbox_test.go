package inbox

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/sign"
)

// post sends one callback to the inbox and returns the response's status.
func post(in *Inbox, path, id, body string) int {
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	req.Header.Set("webhook-id", id)
	req.Header.Set("Ringback-Attempt", "7")
	w := httptest.NewRecorder()
	in.ServeHTTP(w, req)
	return w.Code
}

func newInbox() (*Inbox, *bytes.Buffer) {
	var out bytes.Buffer
	return &Inbox{out: &out, seen: make(map[string]int)}, &out
}

func TestInbox_PrintsALineForEachCallback(t *testing.T) {
	in, out := newInbox()
	require.Equal(t, http.StatusOK, post(in, "/", "job-1", `{"a": 1}`))
	require.Equal(t, http.StatusOK, post(in, "/hooks/x", "job-2", ""))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], `inbox  POST /  id job-1  attempt 7  → 200  {"a": 1}`)
}

func TestInbox_FlakyFailsTheFirstTwoAttemptsOfEachID(t *testing.T) {
	in, _ := newInbox()
	for _, id := range []string{"a", "b"} {
		var statuses []int
		for range 4 {
			statuses = append(statuses, post(in, "/flaky", id, ""))
		}
		require.Equal(t, []int{500, 500, 200, 200}, statuses)
	}
}

func TestInbox_AnswersAsThePathSays(t *testing.T) {
	in, out := newInbox()
	for path, want := range map[string]int{
		"/status/503": 503, "/hooks/status/204": 204, "/slow/1ms": 200, "/slow/1ms/status/429": 429,
		"/status/500/slow/0s": 500, "/statuses": 200, "/status/100": 400, "/status/199": 400,
		"/status/600": 400, "/status/5000": 400, "/status/50x": 400, "/slow/11m": 400, "/slow/-1s": 400, "/slow/5": 400,
		"/orders/status": 200, "/status/paid": 200, "/slow": 200,
	} {
		require.Equal(t, want, post(in, path, path, ""), path)
	}
	require.Contains(t, out.String(), "POST /slow/1ms  id /slow/1ms  attempt 7  → 200 after 1ms")
}

func TestInbox_SaysWhichStatusesThereAre(t *testing.T) {
	in, _ := newInbox()
	w := httptest.NewRecorder()
	in.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/status/5000", http.NoBody))
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Equal(t, "\"5000\" is not a status from 200 to 599: use a path such as /status/503\n", w.Body.String())
}

func TestInbox_SaysWhenTheClientDoesNotWait(t *testing.T) {
	in, out := newInbox()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/slow/10m", http.NoBody))
	require.Contains(t, out.String(), "→ nothing, the client did not wait for 10m0s")
}

func TestInbox_AnswersOthersMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, _ := newInbox()
		var slow sync.WaitGroup
		slow.Go(func() { require.Equal(t, 200, post(in, "/slow/5s", "a", "")) })
		synctest.Wait()
		start := time.Now()
		require.Equal(t, 200, post(in, "/", "b", ""))
		require.Zero(t, time.Since(start))
		slow.Wait()
		require.Equal(t, 5*time.Second, time.Since(start))
	})
}

func TestInbox_PrintsHeadersThatAreNotCommon(t *testing.T) {
	in, out := newInbox()
	req := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	req.Header = http.Header{
		"User-Agent": {"x"}, "Webhook-Id": {"a"}, "X-Two": {"1", "2\x1b[31m"},
		"Ringback-Topic": {"order"}, "Authorization": {"Bearer hunter2"},
	}
	in.ServeHTTP(httptest.NewRecorder(), req)
	_, second, _ := strings.Cut(out.String(), "\n")
	require.Equal(t,
		strings.Repeat(" ", 21)+`Authorization: [redacted]  Ringback-Topic: order  X-Two: 1, 2\x1b[31m`+"\n", second)
	for i := range 30 {
		req.Header.Set("Many-"+strconv.Itoa(i), "1")
	}
	in.ServeHTTP(httptest.NewRecorder(), req)
	require.Contains(t, out.String(), "  and 13 more\n")
}

func TestInbox_SaysWhetherTheSignatureVerifies(t *testing.T) {
	in, out := newInbox()
	secret := sign.NewSecret()
	signer, err := sign.NewSigner(secret)
	require.NoError(t, err)
	said := func(body string) string {
		t.Helper()
		out.Reset()
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		now := time.Now()
		req.Header.Set("Webhook-Id", "a")
		req.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
		req.Header.Set("Webhook-Signature", signer.Sign("a", now, []byte("body")))
		in.ServeHTTP(httptest.NewRecorder(), req)
		return out.String()
	}
	require.Contains(t, said("body"), "  signed  →")
	file := filepath.Join(t.TempDir(), "keys")
	in.keys = keysFile(file)
	require.Contains(t, said("body"), "  signature not verified: read the keys: ")
	require.NoError(t, os.WriteFile(file, []byte("whsec_x"), 0o600))
	require.Contains(t, said("body"), "  signature not verified: read the keys in ")
	require.NoError(t, os.WriteFile(file, []byte("\xff\xfew\x00"), 0o600))
	require.Contains(t, said("body"), " is in UTF-16")
	require.NoError(t,
		os.WriteFile(file, []byte("\xef\xbb\xbf"+sign.NewSecret().Text()+"\n"+secret.Text()+"\n"), 0o600))
	require.Contains(t, said("body"), "  signature valid  →")
	require.Contains(t, said("other"), "  signature WRONG: no signature matches  →")
	require.Contains(t, said(strings.Repeat("x", maxInboxBody+1)), "  signature not verified: the body is too large  →")
	post(in, "/", "a", "")
	require.Contains(t, out.String(), "  not signed  →")
	_, err = Open(t.Context(), "127.0.0.1:0", file+"-none", io.Discard)
	require.ErrorContains(t, err, "open the inbox: read the keys: ")
}

func TestInbox_EvictsTheOldestID(t *testing.T) {
	in, _ := newInbox()
	for i := range inboxIDs + 1 {
		post(in, "/", strconv.Itoa(i), "")
	}
	require.Len(t, in.seen, inboxIDs)
	require.Len(t, in.ids.items, inboxIDs)
	require.NotContains(t, in.seen, "0")
	require.Contains(t, in.seen, strconv.Itoa(inboxIDs))
}

func TestInbox_PrintsOneBoundedLineWithoutControlCharacters(t *testing.T) {
	in, out := newInbox()
	post(in, "/", "id", "line\nnext \x1b[31mred \"quoted\""+strings.Repeat("x", maxShownBody))
	line := strings.TrimSuffix(out.String(), "\n")
	require.NotContains(t, line, "\n")
	require.NotContains(t, line, "\x1b")
	require.Contains(t, line, `"quoted"`)
	require.True(t, strings.HasSuffix(line, "x…"))
}
