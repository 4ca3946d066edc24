package app

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
)

// hunter2 is part of every secret of the test. It is repeated so that its base64 form can be searched for at any
// offset.
const hunter2 = "hunter2hunter2hunter2"

// collector is a receiver that records requests as text. A path such as /500 selects the response's status.
type collector struct {
	*httptest.Server
	mu   sync.Mutex
	text strings.Builder
	ids  map[string]int
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{ids: make(map[string]int)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		fmt.Fprintln(&c.text, r.Method, r.URL, r.Header, string(body))
		c.ids[r.Header.Get("webhook-id")]++
		c.mu.Unlock()
		w.Header().Set("Set-Cookie", "session="+hunter2)
		w.Header().Set("X-Echo", strings.Join(r.Header["Authorization"], ","))
		var status int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &status); err == nil {
			w.WriteHeader(status)
		}
		fmt.Fprint(w, r.Header)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) got() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

func (c *collector) times(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[id]
}

// walk makes requests to an App and records the responses.
type walk struct {
	runningApp
	t       *testing.T
	answers *strings.Builder
}

// ask makes a request. Single quotes in body become double quotes.
func (w walk) ask(status int, target, body string, args ...any) map[string]any {
	w.t.Helper()
	method, path, _ := strings.Cut(target, " ")
	if body != "" {
		body = strings.ReplaceAll(fmt.Sprintf(body, args...), "'", `"`)
	}
	got, answer := w.runningApp.ask(w.t, method, path, body)
	w.answers.WriteString(answer)
	require.Equal(w.t, status, got, "%s %s: %s", target, body, answer)
	var object map[string]any
	if answer != "" && answer[0] == '{' {
		require.NoError(w.t, json.Unmarshal([]byte(answer), &object), answer)
	}
	return object
}

// work does bulk work and returns it after its end.
func (w walk) work(target, body string, args ...any) (found map[string]any) {
	w.t.Helper()
	found = w.ask(202, target, body, args...)
	require.Eventually(w.t, func() bool {
		found = w.ask(200, "GET /v1/work/"+found["id"].(string), "")
		return found["state"] == "done"
	}, 20*time.Second, 10*time.Millisecond)
	return found
}

// until waits until a job is in a state and returns it.
func (w walk) until(id, state string) (found map[string]any) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		got, answer := w.runningApp.ask(w.t, http.MethodGet, "/v1/jobs/"+id, "")
		w.answers.WriteString(answer)
		found = nil
		return got == http.StatusOK && json.Unmarshal([]byte(answer), &found) == nil && found["state"] == state
	}, 20*time.Second, 10*time.Millisecond, "%s is not %s", id, state)
	return found
}

// secrecyStores start a store with its files in a directory, and return its address.
var secrecyStores = map[string]func(t *testing.T, dir string) string{
	"sqlite": func(_ *testing.T, dir string) string { return "sqlite:" + filepath.Join(dir, "ringback.db") },
	"redis": func(t *testing.T, dir string) string {
		return redistest.Start(t, "--dir", dir, "--appendonly", "yes", "--appendfsync", "always").URL()
	},
}

// An attacker who may change settings tries to have secret headers sent to another receiver, or shown. Files of the
// store contain none either.
func TestSecretHeaders_AreSentOnlyToTheirOrigin(t *testing.T) {
	for name, where := range secrecyStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, logged := t.TempDir(), &testkit.Log{}
			o := testOptions(t)
			o.Store, o.SecretKey = where(t, dir), Secret(strings.Repeat("5a", 32))
			o.Logger = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
			home, thief := newCollector(t), newCollector(t)
			w := walk{run(t, o), t, &strings.Builder{}}
			plant(w, home)
			steal(w, home, thief)
			show(w)
			require.Contains(t, home.got(), hunter2+"-topic")
			require.Contains(t, home.got(), hunter2+"-lane")
			require.Contains(t, home.got(), hunter2+"-job")
			require.Contains(t, home.got(), hunter2+"-callback")
			require.NotEmpty(t, thief.got())
			for what, text := range map[string]string{
				"the thief": thief.got(), "an answer": w.answers.String(), "the log": logged.String(),
			} {
				requireNoSecret(t, text, what)
			}
			requireNoSecretIn(t, dir) // including the write-ahead log
			require.NoError(t, w.stop())
			requireNoSecretIn(t, dir)
		})
	}
}

// plant stores secrets in every place that accepts them.
func plant(w walk, home *collector) {
	callback := `{'url': '` + home.URL + `/%d', 'headers': {'Authorization': 'Bearer ` + hunter2 +
		`-callback'}, 'retries': 0, 'include': ['headers', 'body']}`
	w.ask(200, "PUT /v1/topics/orders", `{'url': '%s/200', 'retries': 0, 'ladder': ['50ms'], 'headers': `+
		`{'X-Topic-Token': '%s-topic'}, 'on_dead': %s,
		'on_backlog': {'url': '%s/200', 'more_than': 1000, 'headers': {'Cookie': '%s-backlog'}}}`,
		home.URL, hunter2, fmt.Sprintf(callback, 500), home.URL, hunter2)
	w.ask(200, "PUT /v1/topics/orders/lanes/own",
		`{'url': '%s/200', 'headers': {'X-Api-Key': '%s-lane'}}`, home.URL, hunter2)
	w.ask(200, "PUT /v1/topics/orders/lanes/none", `{'headers': {'X-Api-Key': '%s-lane'}}`, hunter2)
	w.ask(201, "POST /v1/jobs", `{'id': 'follows-topic', 'topic': 'orders', 'lane': 'a', 'delay': '1h', 'headers': `+
		`{'Authorization': 'Bearer %s-job'}}`, hunter2)
	w.ask(201, "POST /v1/jobs", `{'id': 'follows-lane', 'topic': 'orders', 'lane': 'own', 'delay': '1h', 'headers': `+
		`{'Authorization': 'Bearer %s-job'}}`, hunter2)
	w.ask(201, "POST /v1/jobs",
		`{'id': 'goes', 'topic': 'orders', 'lane': 'own', 'headers': {'Authorization': 'Bearer %s-job'}}`, hunter2)
	w.ask(201, "POST /v1/jobs", `{'id': 'edited', 'topic': 'orders', 'lane': 'b', 'delay': '1h', 'body': 1}`)
	w.ask(200, "PATCH /v1/jobs/edited", `{'headers': {'X_Api_Key': '%s-job'}}`, hunter2)
	dies := `{'id': 'dies', 'topic': 'orders', 'url': '%s/500', 'headers': {'Authorization': 'Bearer %s-job'}, ` +
		`'on_delivered': %s}`
	w.ask(201, "POST /v1/jobs", dies, home.URL, hunter2, fmt.Sprintf(callback, 200))
	w.until("goes", "delivered")
	w.until(w.until("dies", "dead")["callback_id"].(string), "dead")
	w.ask(200, "POST /v1/jobs", dies, home.URL, hunter2, fmt.Sprintf(callback, 200))
	w.ask(409, "POST /v1/jobs", dies, home.URL, "guessed", fmt.Sprintf(callback, 200))
}

// steal tries every request that changes a target.
func steal(w walk, home, thief *collector) {
	// Jobs of topics and lanes that have secrets.
	for _, lane := range []string{"a", "own", "none"} {
		w.ask(201, "POST /v1/jobs",
			`{'id': 'register-%s', 'topic': 'orders', 'lane': '%s', 'url': '%s/200'}`, lane, lane, thief.URL)
		w.until("register-"+lane, "delivered")
		require.Equal(w.t, 1, thief.times("register-"+lane))
	}
	// Jobs with their own secrets, and their callbacks.
	callback, _ := w.until("dies", "dead")["callback_id"].(string)
	for _, id := range []string{"follows-topic", "follows-lane", "edited"} {
		w.ask(422, "PATCH /v1/jobs/"+id, `{'url': '%s/200'}`, thief.URL)
	}
	w.ask(409, "PATCH /v1/jobs/dies", `{'url': '%s/200'}`, thief.URL)
	for _, ids := range []string{"'dies'", "'" + callback + "'", "'dies', '" + callback + "'"} {
		require.EqualValues(w.t, 0,
			w.work("POST /v1/dead/revive", `{'ids': [%s], 'url': '%s/200'}`, ids, thief.URL)["done"])
	}
	w.work("POST /v1/dead/revive", `{'kind': 'all', 'url': '%s/200', 'rate': '100/s'}`, thief.URL)
	w.work("POST /v1/work", `{'action': 'edit', 'where': {'kind': 'all'}, 'change': {'url': '%s/200'}}`, thief.URL)
	w.ask(201, "POST /v1/jobs", `{'id': 'worked', 'topic': 'worked', 'delay': '1h', 'url': '%s/200'}`, home.URL)
	edited := w.work("POST /v1/work", `{'action': 'edit', 'where': {'topic': 'worked'}, 'change': {'headers': `+
		`{'Authorization': '%s-work'}}}`, hunter2)
	require.EqualValues(w.t, 1, edited["done"])
	w.ask(422, "PATCH /v1/jobs/worked", `{'url': '%s/200'}`, thief.URL)
	w.ask(200, "POST /v1/jobs/worked/run", "")
	w.until("worked", "delivered")
	w.ask(200, "PUT /v1/topics/_callbacks", `{'ladder': ['50ms']}`)
	w.ask(200, "POST /v1/topics/_callbacks/pause", `{}`)
	w.ask(200, "POST /v1/jobs/"+callback+"/revive", ``)
	w.ask(422, "PATCH /v1/jobs/"+callback, `{'url': '%s/200'}`, thief.URL)
	w.ask(200, "PATCH /v1/topics/_callbacks", `{'url': '%s/200'}`, thief.URL)
	w.ask(200, "POST /v1/topics/_callbacks/resume", `{}`)
	w.until(callback, "dead")

	// Settings that would be sent along.
	for _, body := range []string{
		`{'url': '%s/200'}`, `{'on_dead': {'url': '%s/200'}}`, `{'on_backlog': {'url': '%s/200', 'more_than': 1}}`,
		`{'url': '%s/200', 'headers': {'X-Topic-Token': '[redacted]'}}`,
		`{'url': '%s/200', 'headers': {'X-Other': '1'}}`,
	} {
		w.ask(422, "PATCH /v1/topics/orders", body, thief.URL)
	}
	w.ask(422, "PUT /v1/topics/orders", `{'url': '%s/200'}`, thief.URL)
	w.ask(422, "PATCH /v1/topics/orders/lanes/own", `{'url': '%s/200'}`, thief.URL)
	w.ask(422, "PATCH /v1/topics/orders", `{'headers': {'X-Topic-Token': '\u0000plain:\n%s'}}`, "forged")
	w.ask(200, "PATCH /v1/topics/orders",
		`{'on_delivered': {'url': '%s/200', 'include': ['headers', 'body', 'query']}}`, thief.URL)
	w.ask(200, "PATCH /v1/topics/orders", `{'on_dead': '%s/200'}`, thief.URL)

	// A job that was registered before callbacks included its headers.
	w.ask(200, "POST /v1/jobs/goes/revive", ``)
	id, _ := w.until("goes", "delivered")["callback_id"].(string)
	w.until(id, "delivered")
	require.Equal(w.t, 1, thief.times(id))
	w.ask(200, "POST /v1/jobs/dies/revive", ``)
	id, _ = w.until("dies", "dead")["callback_id"].(string)
	w.until(id, "delivered")
	require.Equal(w.t, 1, thief.times(id))

	// URLs that jobs inherit, once the secrets of the same settings are removed.
	w.ask(200, "PATCH /v1/topics/orders", `{'url': '%s/200', 'headers': {'X-Topic-Token': null}}`, thief.URL)
	w.ask(200, "PATCH /v1/topics/orders/lanes/own", `{'url': '%s/200', 'headers': null}`, thief.URL)
	for _, id := range []string{"follows-topic", "follows-lane", "edited"} {
		w.ask(200, "POST /v1/jobs/"+id+"/run", ``)
		require.Equal(w.t, "invalid", w.until(id, "dead")["reason"])
		w.ask(200, "POST /v1/jobs/"+id+"/revive", ``)
		w.until(id, "dead")
	}
	w.ask(201, "POST /v1/jobs", `{'id': 'other-lane', 'topic': 'orders', 'lane': 'none'}`)
	w.until("other-lane", "delivered")
	require.Equal(w.t, 1, thief.times("other-lane"), "without the lane's headers for the former URL")

	// Back again.
	w.ask(200, "PATCH /v1/topics/orders", `{'url': '%s/200'}`, home.URL)
	w.ask(200, "POST /v1/jobs/follows-topic/revive", ``)
	w.until("follows-topic", "delivered")
	require.Equal(w.t, 1, home.times("follows-topic"))
}

// show reads every readable resource.
func show(w walk) {
	for _, target := range []string{
		"/v1/topics", "/v1/topics/orders", "/v1/topics/_callbacks", "/v1/topics/orders/lanes",
		"/v1/topics/orders/lanes/own", "/v1/topics/orders/stats", "/v1/stats", "/v1/dead", "/v1/dead?topic=_callbacks",
		"/v1/jobs?topic=orders&state=dead", "/v1/jobs?topic=orders&state=delivered",
		"/v1/jobs?topic=_callbacks&state=delivered", "/v1/jobs?topic=_callbacks&state=dead",
		"/metrics", "/openapi.yaml",
	} {
		status, answer := w.runningApp.ask(w.t, http.MethodGet, target, "")
		require.Equal(w.t, http.StatusOK, status, target)
		w.answers.WriteString(answer)
	}
}

func requireNoSecret(t *testing.T, text, where string) {
	t.Helper()
	for _, secret := range []string{hunter2, base64.StdEncoding.EncodeToString([]byte(hunter2))[4:24], "x1:"} {
		if i := strings.Index(text, secret); i >= 0 {
			require.Fail(t, where+" holds a secret", "…%q…", text[max(0, i-200):min(len(text), i+100)])
		}
	}
}

// requireNoSecretIn checks the files of a store.
func requireNoSecretIn(t *testing.T, dir string) {
	t.Helper()
	read := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read += len(raw)
		requireNoSecret(t, strings.ReplaceAll(string(raw), "x1:", ""), filepath.Base(path))
		return nil
	}))
	require.Positive(t, read)
}

// Headers with secrets by names that nobody knows go wherever their job goes, and are shown to those who may read
// bodies. Others and the files of the store do not have them.
func TestHeadersOfUnknownNames_AreHiddenFromReadersAndInNoFile(t *testing.T) {
	header := `'headers': {'Authentication': 'SECRET', 'X-Otp': 'SECRET', 'X-Pin': ['SECRET', 'SECRET'], 'X-Hmac': ` +
		`'SECRET', 'X-Client-Cert': 'SECRET', 'X-Team': 'shop'}`
	header = strings.ReplaceAll(header, "SECRET", hunter2)
	for name, where := range secrecyStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, logged := t.TempDir(), &testkit.Log{}
			o := testOptions(t)
			o.Store, o.SecretKey = where(t, dir), Secret(strings.Repeat("5a", 32))
			o.Logger = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
			home := newCollector(t)
			w := walk{run(t, o), t, &strings.Builder{}}
			callback := `{'url': '` + home.URL + `/200', ` + header + `, 'include': ['headers', 'body']}`
			w.ask(200, "PUT /v1/topics/orders", `{'url': '`+home.URL+`/200', `+header+`, 'on_delivered': `+callback+
				`, 'on_backlog': {'more_than': 1000, `+callback[1:]+`}`)
			w.ask(200, "PUT /v1/topics/orders/lanes/own", `{`+header+`}`)
			w.ask(200, "PUT /v1/topics/pulled", `{'deliver': 'pull', `+header+`}`)
			w.ask(200, "PUT /v1/schedules/daily", `{'cron': '0 9 * * *', 'job': {'topic': 'orders', `+header+`}}`)
			spec := `{'topic': '%s', 'lane': 'own', 'id': '%s', 'delay': '%s', ` + header + `, 'on_delivered': ` +
				callback + `}`
			w.ask(201, "POST /v1/jobs", spec, "orders", "goes", "0s")
			w.ask(201, "POST /v1/jobs", spec, "pulled", "leased", "0s")
			w.ask(201, "POST /v1/jobs", spec, "orders", "waits", "1h")
			w.ask(200, "POST /v1/jobs", spec, "orders", "waits", "1h")
			taken := w.ask(409, "POST /v1/jobs", strings.Replace(spec, hunter2, "another", 1), "orders", "waits", "1h")
			require.Contains(t, fmt.Sprint(taken), "/headers/Authentication")
			w.ask(201, "POST /v1/jobs", `{'topic': 'orders', 'id': 'edited', 'delay': '1h'}`)
			w.ask(200, "PATCH /v1/jobs/edited", `{`+header+`}`)
			w.ask(422, "PATCH /v1/jobs/edited", `{'headers': {'X-Otp': '[redacted]'}}`)
			require.EqualValues(t, 1, w.work("POST /v1/work",
				`{'action': 'edit', 'where': {'topic': 'orders', 'lane': 'own'}, 'change': {`+header+`}}`)["done"])
			w.ask(200, "PATCH /v1/jobs/waits", `{'url': 'https://elsewhere.example/'}`) // no origin binds them
			id, _ := w.until("goes", "delivered")["callback_id"].(string)
			w.until(id, "delivered")
			require.Contains(t, home.got(), "X-Pin:["+hunter2+" "+hunter2+"]")
			require.Contains(t, home.got(), `"X-Otp":"[redacted]"`, "a callback's body is not encrypted")

			token, _ := w.ask(201, "POST /v1/tokens", `{'name': 'reader', 'role': 'read'}`)["token"].(string)
			for _, target := range []string{
				"/v1/jobs/goes", "/v1/jobs/edited", "/v1/jobs/waits",
				"/v1/jobs?topic=orders&state=scheduled", "/v1/jobs/" + id, "/v1/topics", "/v1/topics/orders",
				"/v1/topics/orders/lanes", "/v1/topics/orders/lanes/own", "/v1/schedules",
				"/v1/schedules/daily", "/v1/work",
			} {
				_, all := w.runningApp.ask(t, http.MethodGet, target, "")
				require.Equal(t, target != "/v1/work", strings.Contains(all, hunter2), "%s: %s", target, all)
				require.NotContains(t, all, "x1:", target)
				status, hidden := w.runningApp.ask(t, http.MethodGet, target, "", "Authorization", "Bearer "+token)
				require.Equal(t, http.StatusOK, status, hidden)
				requireNoSecret(t, hidden, target)
				require.Contains(t, hidden, "shop", target)
			}
			leased := w.ask(200, "POST /v1/topics/pulled/lease", `{'request': true}`)
			require.Equal(t, 12, strings.Count(fmt.Sprint(leased), hunter2), "of the job, and of its request")
			requireNoSecret(t, logged.String(), "the log")
			requireNoSecretIn(t, dir) // including the write-ahead log
			require.NoError(t, w.stop())
			requireNoSecretIn(t, dir)
		})
	}
}
