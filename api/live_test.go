package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/livetail"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// liveTest is a server with live events, in fake time.
type liveTest struct {
	*fake
	revoked  atomic.Bool // the token
	stopping sync.WaitGroup
	server   *http.Server
	conn     net.Conn
	returned <-chan struct{} // by the handler
	tail     *failingTail
}

func (l *liveTest) FindStore(context.Context, string) (Store, error) { return l, nil }

// failingTail is a tail that may fail.
type failingTail struct {
	store.LocalTail
	failed atomic.Bool
}

func (f *failingTail) ReadTail(ctx context.Context, reader []byte, after int64) ([][]byte, int64, error) {
	if f.failed.Load() {
		return nil, 0, &store.UnavailableError{Reason: "it is down"}
	}
	return f.LocalTail.ReadTail(ctx, reader, after)
}

func (l *liveTest) Authenticate(ctx context.Context, text string) (*access.Principal, error) {
	if l.revoked.Load() {
		return nil, access.ErrUnknown
	}
	return l.fake.Authenticate(ctx, text)
}

// testLive runs a test with a server that knows the root token "root" and the token fakeToken.
func testLive(t *testing.T, p *access.Principal, test func(t *testing.T, l *liveTest)) {
	t.Helper()
	l := &liveTest{fake: newFake(), tail: new(failingTail)}
	l.callers[fakeToken] = p
	h := New(Options{Service: l, Logger: quiet, Access: AccessOptions{Tokens: []logs.Secret{"root"}}})
	serveInSynctest(t, h, func(t *testing.T, server *http.Server, conn net.Conn, returned <-chan struct{}) {
		l.server, l.conn, l.returned = server, conn, returned
		l.live = livetail.New(l.tail, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); l.live.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		test(t, l)
	})
}

// eventReader reads a stream of events.
type eventReader struct {
	*bufio.Reader
	t *testing.T
}

// open requests the stream with a token, and reads the header.
func (l *liveTest) open(t *testing.T, query, token string) eventReader {
	t.Helper()
	_, err := io.WriteString(l.conn,
		"GET /v1/stream"+query+" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+"\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(l.conn), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
	r := eventReader{bufio.NewReader(resp.Body), t}
	require.Equal(t, "retry: 2000", r.block())
	return r
}

// block reads the lines up to an empty one.
func (r eventReader) block() string {
	r.t.Helper()
	var lines []string
	for {
		line, err := r.ReadString('\n')
		require.NoError(r.t, err, strings.Join(lines, "\n"))
		if line = strings.TrimSuffix(line, "\n"); line == "" {
			return strings.Join(lines, "\n")
		}
		lines = append(lines, line)
	}
}

// event reads an event, and returns its name and its data, which have the schema of the contract.
func (r eventReader) event() (name, data string) {
	r.t.Helper()
	name, data, ok := strings.Cut(strings.TrimPrefix(r.block(), "event: "), "\ndata: ")
	require.True(r.t, ok, name)
	var value any
	require.NoError(r.t, json.Unmarshal([]byte(data), &value))
	schema := map[string]string{
		"attempt": "StreamAttempt", "change": "StreamChange", "skipped": "StreamSkipped",
		"problem": "Problem",
	}[name]
	contract().at("components", "schemas", schema).holds(r.t, name, value)
	return name, data
}

// problem reads the last event and the end.
func (r eventReader) problem() problemBody {
	r.t.Helper()
	name, data := r.event()
	require.Equal(r.t, "problem", name, data)
	var p problemBody
	require.NoError(r.t, json.Unmarshal([]byte(data), &p))
	_, err := r.ReadByte()
	require.ErrorIs(r.t, err, io.EOF)
	return p
}

// liveAttempt is the event of an attempt of a topic.
func liveAttempt(topic string) livetail.Update {
	return livetail.Update{
		At: time.Now(), Namespace: job.DefaultNamespace, Topic: topic, Lane: "shop.example:443", ID: "close-4711",
		Labels: map[string]string{"k": "v"}, Late: new(1500 * time.Microsecond),
		Attempt: &job.Attempt{
			N: 2, Kind: job.KindAttempt, StartedAt: epoch, Duration: 1234500 * time.Microsecond,
			Phases: policy.Phases{FirstByte: time.Second}, URL: "https://shop.example/hook",
			RemoteAddr: "192.0.2.1:443", Process: "host/abc", Status: 503, Verdict: "again", Error: "a\nb",
		},
	}
}

func TestEvents_AreSentAsTheyHappen(t *testing.T) {
	testLive(t, nil, func(t *testing.T, l *liveTest) {
		r := l.open(t, "", "root")
		for range 10 { // longer than every timeout of the server
			l.live.Publish(liveAttempt("orders"))
			name, data := r.event()
			require.Equal(t, "attempt", name)
			require.JSONEq(t, `{"id":"close-4711","topic":"orders","lane":"shop.example:443","labels":{"k":"v"},`+
				`"n":2,"kind":"attempt",`+
				`"started_at":"2030-01-31T08:00:00.123Z","duration_ms":1234.5,"phases":{"dns_ms":null,`+
				`"connect_ms":null,"tls_ms":null,"first_byte_ms":1000},`+
				`"url":"https://shop.example/hook","remote_addr":"192.0.2.1:443","process":"host/abc","status":503,`+
				`"verdict":"again","reason":null,`+
				`"error":"a\nb","error_class":null,"late_ms":1.5}`, data)
			for range 4 {
				require.Equal(t, ": keep-alive", r.block())
			}
		}
		l.live.Publish(livetail.Update{
			At: epoch, Namespace: job.DefaultNamespace, Topic: "orders", Lane: "a", ID: "x",
			Labels: map[string]string{"k": "v"},
			Change: livetail.Change{Kind: "edited", Fields: []string{"url"}, Actor: "shop-api"},
		})
		l.live.Publish(livetail.Update{
			At: epoch, Namespace: job.DefaultNamespace, Topic: "orders",
			Change: livetail.Change{Kind: livetail.Paused},
		})
		_, data := r.event()
		require.JSONEq(t, `{"at":"2030-01-31T08:00:00.123Z","kind":"edited","id":"x","topic":"orders","lane":"a",`+
			`"labels":{"k":"v"},"fields":["url"],`+
			`"actor":"shop-api","reason":null}`, data)
		_, data = r.event()
		require.JSONEq(t, `{"at":"2030-01-31T08:00:00.123Z","kind":"paused","id":null,"topic":"orders","lane":null,`+
			`"labels":null,"fields":null,`+
			`"actor":null,"reason":null}`, data)

		time.Sleep(time.Second)
		for range 150 {
			l.live.Publish(liveAttempt("orders"))
		}
		attempts, skipped := 0, 0
		for attempts+skipped < 150 {
			name, data := r.event()
			if name == "attempt" {
				attempts++
				continue
			}
			var n struct{ Skipped int }
			require.NoError(t, json.Unmarshal([]byte(data), &n))
			skipped += n.Skipped
		}
		require.Equal(t, []int{100, 50}, []int{attempts, skipped})

		began := time.Now()
		require.NoError(t, l.conn.Close())
		<-l.returned
		require.Less(t, time.Since(began), time.Second)
		require.Zero(t, l.live.Listeners())
	})
}

func TestEvents_EndWithTheTokenTheStoreAndTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(l *liveTest)
		code string
	}{
		"revoked": {func(l *liveTest) { l.revoked.Store(true) }, "token_unknown"},
		"expired": {func(*liveTest) { time.Sleep(time.Minute) }, "token_expired"},
		"store":   {func(l *liveTest) { l.tail.failed.Store(true) }, "store_unavailable"},
		"shutdown": {func(l *liveTest) {
			l.stopping.Go(func() { _ = l.server.Shutdown(context.Background()) })
		}, "shutting_down"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &access.Principal{Role: access.Read, Namespace: job.DefaultNamespace}
			testLive(t, p, func(t *testing.T, l *liveTest) {
				p.ExpiresAt = time.Now().Add(time.Minute)
				r := l.open(t, "", fakeToken)
				l.live.Publish(liveAttempt("orders"))
				name, _ := r.event()
				require.Equal(t, "attempt", name)
				read := make(chan struct{})
				go func() { // keep-alives
					defer close(read)
					for next, _ := r.Peek(1); len(next) > 0 && next[0] == ':'; next, _ = r.Peek(1) {
						r.block()
					}
				}()
				synctest.Wait()
				c.end(l)
				began := time.Now()
				<-read
				require.Equal(t, c.code, r.problem().Code)
				require.Less(t, time.Since(began), time.Second)
				<-l.returned
				l.stopping.Wait()
			})
		})
	}
}

func TestEvents_AClientThatDoesNotReadIsDisconnectedAndDelaysNobody(t *testing.T) {
	testLive(t, nil, func(t *testing.T, l *liveTest) {
		l.open(t, "", "root")
		began := time.Now()
		for range 20 {
			for range 1000 {
				l.live.Publish(liveAttempt("orders"))
			}
		}
		require.Zero(t, time.Since(began), "publishing does not wait")
		<-l.returned
		require.Less(t, time.Since(began), liveWriteTimeout+time.Second)
		require.Zero(t, l.live.Listeners())
	})
}

func TestEvents_AreThoseOfTheTokensNamespaceAndTopics(t *testing.T) {
	p := &access.Principal{Role: access.Read, Namespace: "shop", Topics: access.Topics{"order.*"}}
	testLive(t, p, func(t *testing.T, l *liveTest) {
		r := l.open(t, "", fakeToken)
		for _, namespace := range []string{job.DefaultNamespace, "shop"} {
			for _, topic := range []string{"invoice", "_callbacks", "order.close"} {
				e := liveAttempt(topic)
				e.Namespace, e.ID = namespace, namespace+"/"+topic
				l.live.Publish(e)
			}
		}
		_, data := r.event()
		require.Contains(t, data, `"id":"shop/order.close"`)
		require.Equal(t, ": keep-alive", r.block())
	})
}

func TestEvents_RefusesInvalidFiltersAndTooManyClients(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	w := call(t, h, http.MethodGet, "/v1/stream?topic=a/b&lane=a/b&verdict=lost&state=dead", "")
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	var fields []string
	for _, e := range problemIn(t, w).Errors {
		fields = append(fields, e.Field)
	}
	require.ElementsMatch(t, []string{"?topic", "?lane", "?verdict", "?state"}, fields)
	require.Equal(t, http.StatusOK,
		call(t, h, http.MethodGet, "/v1/stream?topic=_callbacks&lane=[::1]:80&verdict=dead", "").Code)
	require.Empty(t, call(t, h, http.MethodHead, "/v1/stream", "").Body.String())
	require.Zero(t, f.live.Listeners())

	for range capacity.LiveListeners.Share() {
		l, err := f.live.Listen(t.Context(), livetail.Filter{Namespace: job.DefaultNamespace})
		require.NoError(t, err)
		defer l.Close()
	}
	require.Equal(t, http.StatusOK, call(t, h, http.MethodHead, "/v1/stream", "").Code, "it has no listener")
	w = call(t, h, http.MethodGet, "/v1/stream", "")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Contains(t, problemIn(t, w).Detail, "its share of 12")

	f.err = errors.New("the disk is on fire")
	require.Equal(t, http.StatusInternalServerError, call(t, h, http.MethodGet, "/v1/stream", "").Code)
}
