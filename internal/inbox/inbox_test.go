package inbox

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

func TestInbox_EvictsTheOldestID(t *testing.T) {
	in, _ := newInbox()
	for i := range inboxIDs + 1 {
		post(in, "/", strconv.Itoa(i), "")
	}
	require.Len(t, in.seen, inboxIDs)
	require.Len(t, in.ids, inboxIDs)
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
