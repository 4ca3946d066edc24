package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
)

// A Redis password. Its second half follows characters that must be percent-encoded in a URL, so that a careless parser
// would print it as a port or a fragment. Both halves are unique words.
const (
	passwordWord = "hushabye"
	password     = passwordWord + "/#" + passwordWord + "@9"
)

// startSecret starts ringback with a password in the store's URL, passed as documented, and records its output.
func startSecret(t *testing.T, store string, flags ...string) (*process, *testkit.Log) {
	t.Helper()
	written := &testkit.Log{}
	args := append([]string{"serve", "--addr=127.0.0.1:0", "--allow-private", "--log=json"}, flags...)
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), binary, args...), gone: make(chan struct{})}
	p.cmd.Env = cleanEnv("RINGBACK_STORE=" + store)
	p.cmd.Stdout = written
	stderr, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	listening := make(chan string, 1)
	go p.follow(io.TeeReader(stderr, written), listening)
	t.Cleanup(p.kill)
	select {
	case addr := <-listening:
		p.url = "http://" + addr
	case <-p.gone:
		t.Fatalf("ringback ended at its start:\n%s", written)
	case <-time.After(testkit.MustCome):
		t.Fatalf("ringback does not say where it listens:\n%s", written)
	}
	eventually(t, p.ready, "ringback is not ready")
	return p, written
}

// quiet requires that a text contains no password.
func quiet(t *testing.T, text string) {
	t.Helper()
	require.NotContains(t, strings.ToLower(text), passwordWord)
}

// goesItsWay uses every step of a job: put a topic, register, fail once, deliver, read, cancel.
func goesItsWay(t *testing.T, p *process, topic string) {
	t.Helper()
	r := newReceiver(t)
	put := call[struct{ Ladder []string }](t, p, http.MethodPut, "/v1/topics/"+topic,
		obj{"ladder": []string{"50ms"}}, http.StatusOK)
	require.Equal(t, []string{"50ms"}, put.Ladder)
	cancelled := register(t, p, obj{"topic": topic, "url": r.URL + "/ok", "delay": "1h"})
	call[view](t, p, http.MethodDelete, "/v1/jobs/"+cancelled.ID, nil, http.StatusOK)
	job := register(t, p,
		obj{"id": "its-way", "topic": topic, "url": r.URL + "/fail/1", "delay": "200ms", "body": "text"})
	again := call[view](t, p, http.MethodPost, "/v1/jobs",
		obj{"id": "its-way", "topic": topic, "url": r.URL + "/fail/1", "delay": "200ms", "body": "text"}, http.StatusOK)
	require.Equal(t, job.ID, again.ID)
	arrivals := r.arrives(t, job.ID, 2)
	require.Equal(t, `"text"`, arrivals[1].body)
	require.False(t, arrivals[0].began.Before(arrivals[0].due))
	done := await(t, p, job.ID, "delivered")
	require.Equal(t, []string{"attempt", "attempt"}, done.kinds())
	require.Equal(t, "cancelled", get(t, p, cancelled.ID).State)
	require.Equal(t, 1, listed(t, p, topic, "delivered"))
	sum := count(t, p)
	require.Equal(t, counts{Registered: 2, Delivered: 1, Cancelled: 1}, sum, sum.String())
	require.Empty(t, r.of(cancelled.ID))
}

// listed counts the jobs of a topic in a state, page by page.
func listed(t *testing.T, p *process, topic, state string) (n int) {
	t.Helper()
	path := "/v1/jobs?topic=" + topic + "&state=" + state
	for cursor := ""; ; {
		page := call[struct {
			Items      []view
			NextCursor string `json:"next_cursor"`
		}](t, p, http.MethodGet, path+cursor, nil, http.StatusOK)
		n += len(page.Items)
		if page.NextCursor == "" {
			return n
		}
		cursor = "&cursor=" + url.QueryEscape(page.NextCursor)
	}
}

// userinfo is a user and a password as written in a URL.
func userinfo(user, password string) string { return url.UserPassword(user, password).String() + "@" }

// with adds a user, a password and options to a URL.
func with(store, info, options string) string {
	store = strings.Replace(store, "://", "://"+info, 1)
	if options == "" {
		return store
	}
	if strings.Contains(store, "?") {
		return store + "&" + options
	}
	return store + "?" + options
}

// leastRights creates the user that docs/redis.md describes.
func leastRights(t *testing.T, server *redistest.Server) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { require.NoError(t, c.Close()) }()
	page, err := os.ReadFile("../docs/redis.md")
	require.NoError(t, err)
	_, rules, found := strings.Cut(string(page), "user ringback on >PASSWORD ")
	require.True(t, found, "the page gives no rules")
	rules, _, _ = strings.Cut(rules, "\n")
	args := []any{"ACL", "SETUSER", "ringback", "reset", "on", ">" + password}
	for rule := range strings.FieldsSeq(rules) {
		args = append(args, rule)
	}
	require.NoError(t, c.Do(t.Context(), args...).Err())
	require.NoError(t, c.Do(t.Context(), "ACL", "SETUSER", "default", "off").Err())
}

func TestStore_DeliversOnEveryFormOfRedisWithoutShowingPasswords(t *testing.T) {
	forms := []struct {
		name  string
		store func(t *testing.T) (store string, away func())
	}{
		{"a password and another database", func(t *testing.T) (string, func()) {
			s := redistest.Start(t, "--requirepass", password)
			return with(s.URL(), userinfo("", password), "") + "/5", s.Kill
		}},
		{"a user with the least rights", func(t *testing.T) (string, func()) {
			s := redistest.Start(t)
			leastRights(t, s)
			return with(s.URL(), userinfo("ringback", password), ""), s.Kill
		}},
		{"TLS with a client's certificate", func(t *testing.T) (string, func()) {
			s := redistest.StartTLS(t, "--requirepass", password)
			files := url.Values{"tls_ca": {s.CA}, "tls_cert": {s.Cert}, "tls_key": {s.Key}}
			return with(s.URL(), userinfo("", password), files.Encode()), s.Kill
		}},
		{"a unix socket", func(t *testing.T) (string, func()) {
			s := redistest.StartUnix(t, "--requirepass", password)
			return with(s.URL(), userinfo("", password), "db=2"), s.Kill
		}},
		{"sentinels", func(t *testing.T) (string, func()) {
			s := redistest.StartSentinel(t, 1, "--requirepass", password, "--masterauth", password)
			return with(s.URL(), userinfo("", password), "sentinel_password="), s.Master().Kill
		}},
		{"a cluster", func(t *testing.T) (string, func()) {
			c := redistest.StartCluster(t, 3, 0, "--requirepass", password, "--masterauth", password)
			return with(c.URL(), userinfo("", password), ""), func() {
				for _, n := range c.Nodes() {
					n.Kill()
				}
			}
		}},
	}
	t.Parallel()
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			t.Parallel()
			store, away := form.store(t)
			p, written := startSecret(t, store)
			goesItsWay(t, p, "forms")
			require.Contains(t, written.String(), "://", "the log names the store, without its password")
			quiet(t, written.String())

			// Errors name the cause to clients and in the log, without a password.
			away()
			var why string
			eventually(t, func() bool { why = p.unready(); return why != "" })
			quiet(t, why)
			for _, path := range []string{"/v1/jobs/its-way", "/v1/stats", "/v1/topics/forms"} {
				_, answer, err := send(p.url, http.MethodGet, path, nil)
				require.NoError(t, err)
				quiet(t, string(answer))
			}
			status, answer, err := send(p.url, http.MethodPost, "/v1/jobs",
				obj{"topic": "forms", "url": "http://127.0.0.1:9/"})
			require.NoError(t, err)
			require.Equal(t, http.StatusServiceUnavailable, status, "%s", answer)
			quiet(t, string(answer))
			code, _ := p.terminate()
			require.Zero(t, code)
			quiet(t, written.String())
		})
	}
}

// Errors about a store that cannot be opened contain no password, whatever is wrong with the URL.
func TestStore_ErrorsHideThePassword(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--requirepass", "another")
	for name, store := range map[string]string{
		"a wrong password": with(server.URL(), userinfo("", password), ""),
		"a wrong user":     with(server.URL(), userinfo("nobody", password), ""),
		"an unencoded one": "redis://:" + password + "@" + server.Addr(),
		"no server":        with("redis://127.0.0.1:1", userinfo("", password), ""),
		"no cluster":       with("redis+cluster://"+server.Addr(), userinfo("", password), ""),
		"no sentinels": with("redis+sentinel://"+
			server.Addr(), userinfo("", password), "master_name=m&sentinel_password="+url.QueryEscape(password)),
		"no TLS":               with("rediss://"+server.Addr(), userinfo("", password), "dial_timeout=1s"),
		"no files":             with("rediss://"+server.Addr(), userinfo("", password), "tls_ca=/nowhere"),
		"an unknown option":    with(server.URL(), userinfo("", password), "colour=red"),
		"an unknown scheme":    with("keydb://"+server.Addr(), userinfo("", password), ""),
		"no socket":            with("unix:///nowhere/r.sock", userinfo("", password), ""),
		"a cluster's database": with("redis+cluster://"+server.Addr()+"/3", userinfo("", password), ""),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), binary, "serve", "--addr=127.0.0.1:0")
			cmd.Env = cleanEnv("RINGBACK_STORE=" + store)
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.NotEmpty(t, out, "the error has a reason")
			quiet(t, string(out))
		})
	}
}

func TestStore_PrefixesIsolateInstallations(t *testing.T) {
	t.Parallel()
	server, r := redistest.Start(t), newReceiver(t)
	one, two := start(t, server.URL(), "--redis-prefix=one"), start(t, server.URL(), "--redis-prefix=two", "--shards=4")
	all := []*process{one, two}
	for n, p := range all {
		call[obj](t, p, http.MethodPut, fmt.Sprintf("/v1/topics/of-%d", n), obj{"workers": 7 + n}, http.StatusOK)
		// The same id and topic, another job.
		register(t, p, obj{
			"id": "same", "topic": "same", "url": fmt.Sprintf("%s/ok?of=%d", r.URL, n),
			"body": n, "delay": "100ms",
		})
	}
	r.arrives(t, "same", 2)
	for n, p := range all {
		done := await(t, p, "same", "delivered")
		require.Equal(t, fmt.Sprintf("%s/ok?of=%d", r.URL, n), done.URL)
		register(t, p,
			obj{"id": fmt.Sprintf("only-%d", n), "topic": fmt.Sprintf("of-%d", n), "url": r.URL + "/ok", "delay": "1h"})
	}
	for n, p := range all {
		call[obj](t, p, http.MethodGet, fmt.Sprintf("/v1/jobs/only-%d", 1-n), nil, http.StatusNotFound)
		call[obj](t, p, http.MethodGet, fmt.Sprintf("/v1/jobs/only-%d", n), nil, http.StatusOK)
		sum := count(t, p)
		require.Equal(t, counts{Registered: 2, Delivered: 1, Scheduled: 1}, sum, sum.String())
		_, answer, err := send(p.url, http.MethodGet, "/v1/topics", nil)
		require.NoError(t, err)
		require.Contains(t, string(answer), fmt.Sprintf(`"of-%d"`, n))
		require.NotContains(t, string(answer), fmt.Sprintf(`"of-%d"`, 1-n))
	}
	keys, err := admin(t, server).Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		begin := strings.TrimPrefix(key, "{")
		require.True(t, strings.HasPrefix(begin, "one:") || strings.HasPrefix(begin, "two:"), key)
	}
}
