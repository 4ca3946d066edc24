package sign

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// recordingHandler records the requests behind the middleware.
type recordingHandler struct {
	calls  int
	body   string
	length int64
	id     string
}

func (l *recordingHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.calls++
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	l.body, l.length, l.id = string(body), r.ContentLength, r.Header.Get("webhook-id")
	w.WriteHeader(http.StatusNoContent)
}

var noon = time.Unix(1_700_000_000, 0)

func clock() time.Time { return noon }

// signed returns a request signed with s.
func signed(t testing.TB, s Secret, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/hooks", strings.NewReader(body))
	r.Header = headers("msg_1", noon.Unix(), newSigner(t, s).Sign("msg_1", noon, []byte(body)))
	return r
}

func TestMiddleware_PassesTheVerifiedBody(t *testing.T) {
	s := NewSecret()
	for _, body := range []string{"", "{}", "\xff\x00\xfe", strings.Repeat("a", 100_000)} {
		var l recordingHandler
		h := Middleware(newVerifier(t, s.Text()), MiddlewareOptions{Now: clock})(&l)
		w := httptest.NewRecorder()
		r := signed(t, s, body)
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusNoContent, w.Code, w.Body)
		require.Equal(t, recordingHandler{calls: 1, body: body, length: int64(len(body)), id: "msg_1"}, l)
	}
}

func TestMiddleware_VerifiesOverHTTP(t *testing.T) {
	s := NewKey()
	var l recordingHandler
	server := httptest.NewServer(Middleware(newVerifier(t, s.PublicKey()), MiddlewareOptions{})(&l))
	defer server.Close()
	body, at := `{"order":4711}`, time.Now()
	for _, chunked := range []bool{false, true} {
		var reader io.Reader = strings.NewReader(body)
		if chunked {
			reader = io.MultiReader(reader) // of unknown length
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, reader)
		require.NoError(t, err)
		req.Header = headers("msg_1", at.Unix(), newSigner(t, s).Sign("msg_1", at, []byte(body)))
		resp, err := server.Client().Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusNoContent, resp.StatusCode)
		require.Equal(t, body, l.body)
		require.EqualValues(t, len(body), l.length)
	}
}

func TestMiddleware_RejectsUnverifiedRequests(t *testing.T) {
	s := NewSecret()
	late := func(by time.Duration) func() time.Time { return func() time.Time { return noon.Add(by) } }
	cases := map[string]struct {
		change  func(r *http.Request)
		now     func() time.Time
		maxBody int64
		status  int
		says    string
	}{
		"not signed": {
			change: func(r *http.Request) { r.Header = nil }, status: 401,
			says: "webhook-id is missing",
		},
		"no signature": {
			change: func(r *http.Request) { r.Header.Del(HeaderSignature) }, status: 401,
			says: "webhook-signature is missing",
		},
		"an unreadable time": {
			change: func(r *http.Request) { r.Header.Set(HeaderTimestamp, "soon") }, status: 400,
			says: "not a number of seconds",
		},
		"too old": {now: late(301 * time.Second), status: 401, says: "too old"},
		"too new": {now: late(-301 * time.Second), status: 401, says: "in the future"},
		"another body": {
			change: func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("{} ")) },
			status: 401, says: "no signature matches",
		},
		"no body": {
			change: func(r *http.Request) { r.Body = nil }, status: 401,
			says: "no signature matches",
		},
		"signed by another": {
			change: func(r *http.Request) { r.Header = signed(t, NewSecret(), "{}").Header },
			status: 401, says: "no signature matches",
		},
		"too large": {maxBody: 1, status: 413, says: "too large"},
		"too large, not said so": {
			maxBody: 1, change: func(r *http.Request) { r.ContentLength = -1 },
			status: 413, says: "too large",
		},
		"a body that breaks off": {change: func(r *http.Request) {
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader("{"), brokenReader{}))
		}, status: 400, says: "could not be read"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var l recordingHandler
			if c.now == nil {
				c.now = clock
			}
			h := Middleware(newVerifier(t, s.Text()), MiddlewareOptions{Now: c.now, MaxBody: c.maxBody})(&l)
			r := signed(t, s, "{}")
			if c.change != nil {
				c.change(r)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Zero(t, l.calls)
			require.Equal(t, c.status, w.Code)
			require.Contains(t, w.Body.String(), c.says)
			require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
			require.Less(t, w.Body.Len(), 120)
			requireNothingOf(t, s.Text(), w.Body.String())
			require.NotContains(t, w.Body.String(), "secret of the connection")
		})
	}
}

// brokenReader is a body that fails.
type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("secret of the connection") }

func TestMiddleware_ReadsNoBodyAfterInvalidHeaders(t *testing.T) {
	s := NewSecret()
	for name, change := range map[string]func(*http.Request){
		"not signed": func(r *http.Request) { r.Header = nil },
		"too old":    func(r *http.Request) { r.Header.Set(HeaderTimestamp, "1600000000") },
		"too large":  func(r *http.Request) { r.ContentLength = DefaultMaxBody + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			r := signed(t, s, "{}")
			body := &bytes.Buffer{}
			body.WriteString("{}")
			r.Body = io.NopCloser(body)
			change(r)
			w := httptest.NewRecorder()
			Middleware(newVerifier(t, s.Text()), MiddlewareOptions{Now: clock})(&recordingHandler{}).ServeHTTP(w, r)
			require.GreaterOrEqual(t, w.Code, 400)
			require.Equal(t, 2, body.Len())
		})
	}
}

func TestMiddleware_BoundsTheBody(t *testing.T) {
	s := NewSecret()
	for _, c := range []struct {
		size    int
		maxBody int64
		status  int
	}{
		{6*256<<10 + 64<<10, 0, 204}, // a callback with a body that was escaped throughout
		{4 << 20, 0, 204},
		{4<<20 + 1, 0, 413},
		{10, 10, 204},
		{11, 10, 413},
		{1<<20 + 1, 2 << 20, 204},
	} {
		for _, length := range []int64{-1, int64(c.size)} {
			var l recordingHandler
			r := signed(t, s, strings.Repeat("a", c.size))
			r.ContentLength = length
			w := httptest.NewRecorder()
			Middleware(newVerifier(t, s.Text()), MiddlewareOptions{Now: clock, MaxBody: c.maxBody})(&l).ServeHTTP(w, r)
			require.Equal(t, c.status, w.Code, "%d bytes of %d", c.size, c.maxBody)
		}
	}
}

func TestMiddleware_PanicsOnInvalidOptions(t *testing.T) {
	require.Panics(t, func() { Middleware(nil, MiddlewareOptions{}) })
	require.Panics(t, func() { Middleware(newVerifier(t, NewSecret().Text()), MiddlewareOptions{MaxBody: -1}) })
}
