package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/ringback/ringback/client"
)

// fake is a server that answers with one answer after the other, and keeps the requests.
type fake struct {
	mu       sync.Mutex
	answers  []func(w http.ResponseWriter)
	requests []string
	bodies   []string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.requests = append(f.requests,
		strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("If-Match")+r.Header.Get("If-None-Match")))
	f.bodies = append(f.bodies, string(body))
	answer := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	f.mu.Unlock()
	answer(w)
}

// says answers with a status and a document.
func says(status int, document string) func(w http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, document)
	}
}

// results answers with lines of a stream.
func results(lines ...string) func(w http.ResponseWriter) {
	return says(200, strings.Join(lines, "\n"))
}

// result is what a command line left.
type result struct {
	code           int
	stdout, stderr string
	*fake
}

// run runs a command line against a server with these answers.
func run(t *testing.T, args []string, answers ...func(w http.ResponseWriter)) result {
	t.Helper()
	return runUntil(t.Context(), t, args, answers...)
}

// parser is that of all tests: it takes long to make one.
var parser = sync.OnceValue(func() *kong.Kong {
	return kong.Must(new(Commands), kong.Name("ringback"), kong.ExplicitGroups(Groups))
})

func runUntil(ctx context.Context, t *testing.T, args []string, answers ...func(w http.ResponseWriter)) result {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	f := &fake{answers: answers}
	server := httptest.NewServer(f)
	defer server.Close()
	var stdout, stderr strings.Builder
	e := &Environment{
		Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		Variables: map[string]string{
			"RINGBACK_SERVER": server.URL, OutputVariable: "table",
			"RINGBACK_TOKEN": "s3cret-token",
		},
	}
	require.NoError(t, kong.Visit(parser().Model, func(v kong.Visitable, next kong.Next) error {
		switch v := v.(type) {
		case *kong.Flag:
			v.Set = false // of the command line before
		case *kong.Value:
			v.Set = false
		}
		return next(nil)
	}))
	k, err := Parse(parser(), args, nil)
	if err != nil {
		return result{ReportError(&stderr, nil, &usageError{Err: err}), stdout.String(), stderr.String(), f}
	}
	k.BindTo(ctx, (*context.Context)(nil))
	code := ok
	if err := Run(k, e); err != nil {
		code = ReportError(&stderr, k.Selected(), err)
	}
	return result{code, stdout.String(), strings.ReplaceAll(stderr.String(), server.URL, "SERVER"), f}
}

func TestRequests_AreWhatFlagsSay(t *testing.T) {
	for _, c := range []struct{ line, request, body string }{
		{
			"topic set a/b ladder=15s,3m rate=100/s breaker.failures=5 breaker.open=1m retries=null give_up_on=410",
			"PATCH /v1/topics/a%2Fb", `{"breaker":{"failures":5,"open":"1m"},"give_up_on":["410"],"ladder":["15s",` +
				`"3m"],"rate":"100/s","retries":null}`,
		},
		{
			"job edit j --retries 0 --ladder 1s,2s --unset expires-at --label a=b=c -H X-A:1", "PATCH /v1/jobs/j",
			`{"expires_at":null,"headers":{"X-A":["1"]},"labels":{"a":"b=c"},"ladder":["1s","2s"],"retries":0}`,
		},
		{"job cancel j --if-revision 3", `DELETE /v1/jobs/j "3"`, ""},
		{"job run j", "POST /v1/jobs/j/run", ""},
		{
			"job list --state dead,ready --label a:b --label c:d,e --limit 7 --status 503",
			"GET /v1/jobs?label=a%3Ab&label=c%3Ad%2Ce&limit=7&state=dead&state=ready&status=503", "",
		},
		{"namespace delete n --purge --yes", "DELETE /v1/namespaces/n?purge=true", ""},
		{"dead revive a b --yes --rate 5/s --detach", "POST /v1/dead/revive", `{"ids":["a","b"],"rate":"5/s"}`},
		{
			"work start edit --topic t --state ready --set retries=3 --yes --detach", "POST /v1/work",
			`{"action":"edit","change":{"retries":3},"where":{"state":["ready"],"topic":"t"}}`,
		},
		{"token create x --role read --no-bodies --topics " +
			"a,b.*", "POST /v1/tokens", `{"bodies":false,"name":"x","role":"read","topics":["a","b.*"]}`},
		{
			"schedule backfill s 2030-01-01T00:00:00Z 2030-01-02T00:00:00Z --dry-run", "POST /v1/schedules/s/backfill",
			`{"after":"2030-01-01T00:00:00Z","before":"2030-01-02T00:00:00Z","dry_run":true}`,
		},
		{"send http://x/ --id j -d not-json --content-type text/csv", "POST /v1/jobs", `{"body_text":"not-json",` +
			`"content_type":"text/csv","id":"j","url":"http://x/"}`},
		{"api put /v1/x?y=z -d [1]", "PUT /v1/x?y=z", "[1]"},
	} {
		r := run(t, strings.Fields(c.line), says(200, `{"id":"i","items":[]}`))
		require.Zero(t, r.code, "%s: %s", c.line, r.stderr)
		require.Equal(t, []string{c.request}, r.requests)
		if c.body == "" {
			require.Empty(t, r.bodies[0])
		} else {
			require.JSONEq(t, c.body, r.bodies[0])
		}
	}
	r := run(t, []string{"topic", "set", "t", "rate=1/s"}, says(404, `{"code":"not_found"}`), says(200, `{}`))
	require.Equal(t, []string{"PATCH /v1/topics/t", "PUT /v1/topics/t *"}, r.requests,
		"it is created, unless somebody else has done so")
	r = run(t, []string{"send", "http://x/", "-d", `{"n":   1.0}`}, says(201, `{"id":"i"}`))
	require.Contains(t, r.bodies[0], `"body": {"n":   1.0}`, "byte for byte")
}

// A variable of a shell that is not set must not make a filter wider, or name something else.
func TestRequests_RefuseEmptyFlagsAndArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		name string
	}{
		{[]string{"dead", "purge", "--topic", "", "--ended-before", "30d", "--yes"}, "--topic"},
		{[]string{"dead", "purge", "--topic", "t", "--ended-before=", "--yes"}, "--ended-before"},
		{[]string{"dead", "purge", "--topic", "t", "--namespace", "", "--yes"}, "--namespace"},
		{[]string{"work", "start", "cancel", "--topic", "t", "--lane", "", "--yes"}, "--lane"},
		{[]string{"job", "list", "--state", ""}, "--state"},
		{[]string{"token", "create", "x", "--role", "read", "--topics", ""}, "--topics"},
		{[]string{"topic", "delete", "", "--yes"}, "<topic>"},
		{[]string{"dead", "revive", "a", "", "--yes"}, "id"},
		{[]string{"stats", ""}, "topic"},
		{[]string{"tail", "--topic", ""}, "--topic"},
		{[]string{"check", "--topic", ""}, "--topic"},
	} {
		r := run(t, c.args, says(200, `{"matched":1}`))
		require.Equal(t, Usage, r.code, c.args)
		require.Empty(t, r.requests, c.args)
		require.Regexp(t, c.name+`.*: is empty; leave it out, or give a value`, r.stderr)
	}
	r := run(t, []string{"job", "edit", "j", "-d", ""}, says(200, `{}`))
	require.Zero(t, r.code, r.stderr)
	require.JSONEq(t, `{"body_text":""}`, r.bodies[0], "a body may be empty")
}

func TestCurl_PrintsTheRequestAndSendsNothing(t *testing.T) {
	r := run(t, []string{"dead", "purge", "--all", "-o", "curl"}, says(200, `{}`))
	require.Zero(t, r.code)
	require.Empty(t, r.requests)
	require.Contains(t, r.stdout, `/v1/dead/purge -H @- -H 'Content-Type: application/json' --data-raw '{"all": true}'`)
	require.True(t, strings.HasPrefix(r.stdout, `echo "Authorization: Bearer $RINGBACK_TOKEN" | head -n 1 | curl http`),
		"arguments are visible to all users: "+r.stdout)
	require.NotContains(t, r.stdout, "s3cret")
}

func TestErrors_HaveACodeAndNameTheFlag(t *testing.T) {
	problem := func(status int, code string) func(w http.ResponseWriter) {
		return says(status, fmt.Sprintf(`{"code": %q, "detail": "d", "errors": [{"field": "/run_at", "detail": "is `+
			`\u001b[31m bad"}, {"field": "/x/y", "detail": "z"}]}`, code))
	}
	for status, code := range map[int]int{
		400: 5, 401: 5, 403: 5, 404: 3, 409: 4, 412: 4, 413: 5, 422: 5, 429: 5, 500: 6, 503: 6,
	} {
		r := run(t, []string{"job", "edit", "j", "--delay", "1s"}, problem(status, "c"))
		require.Equal(t, code, r.code, status)
		require.Contains(t, r.stderr,
			fmt.Sprintf("ringback: d (%d c)\n  --run-at (/run_at) is \\u001b[31m bad\n  /x/y z\n", status))
	}
	r := run(t, []string{"whoami"}, problem(401, "token_unknown"))
	require.Contains(t, r.stderr, "ringback context show")
	r = run(t, []string{"whoami"}, says(502, "<html>proxy</html>"))
	require.Equal(t, Unavailable, r.code)
	require.Contains(t, r.stderr, "answers as Ringback does not: <html>proxy</html>")
	r = run(t, []string{"whoami"}, says(302, ""))
	require.Equal(t, refused, r.code, "redirects would take the token elsewhere")
}

func TestSend_RepeatsUnderTheSameID(t *testing.T) {
	r := run(t, []string{"send", "http://x/"}, says(503, `{"code":"store_unavailable"}`), says(201, `{"id":"i"}`))
	require.Zero(t, r.code)
	require.Len(t, r.requests, 2)
	require.Equal(t, r.bodies[0], r.bodies[1])
	require.Contains(t, r.bodies[0], `"id": "`)
}

func TestSend_SaysThatAJobHasEnded(t *testing.T) {
	for state, want := range map[string]string{
		"ready": "registered j\n",
		"dead":  "j was registered before, and is dead: ringback job revive j sends it again\n",
	} {
		for _, command := range []string{"send http://x/ --id j", "job add --url http://x/ --id j"} {
			r := run(t, strings.Fields(command), says(200, `{"id":"j","state":"`+state+`"}`))
			require.Zero(t, r.code)
			require.Equal(t, want, r.stdout)
		}
	}
}

// After a lost answer the command's own repeat finds the job, which may have ended meanwhile.
func TestSend_DoesNotSayThatItsOwnRepeatWasRegisteredBefore(t *testing.T) {
	for state, want := range map[string]string{
		"ready":     "registered j\n",
		"delivered": "j is registered, and is delivered\n",
		"dead":      "j is registered, and is dead: ringback job revive j sends it again\n",
	} {
		r := run(t, strings.Fields("send http://x/ --id j"), says(502, "cut off"),
			says(200, `{"id":"j","state":"`+state+`"}`))
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, want, r.stdout)
	}
	file := filepath.Join(t.TempDir(), "jobs.jsonl")
	lines := `{"id": "a"}` + "\n" + `{"id": "b"}` + "\n" + `{"id": "c"}` + "\n" + `{"id": "d"}` + "\n"
	require.NoError(t, os.WriteFile(file, []byte(lines), 0o600))
	r := run(t, []string{"job", "add", "-f", file}, results(`{"index":0,"id":"a","status":200,`+
		`"state":"ready"}`), results(
		`{"index":0,"id":"b","status":200,"state":"dead"}`, `{"index":1,"id":"c","status":200,"state":"delivered"}`,
		`{"index":2,"id":"d","status":200,"state":"running"}`))
	require.Zero(t, r.code)
	require.Equal(t, "line 2, b is registered, and is dead: ringback job revive b sends it again\n4 registered, 1 of "+
		"them before; 0 refused\n", r.stderr)
}

func TestJobAdd_SaysWhichLinesHaveEnded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.jsonl")
	lines := `{"id": "a"}` + "\n" + `{"id": "b"}` + "\n" + `{"id": "c"}` + "\n" + `{"id": "d"}` + "\n"
	require.NoError(t, os.WriteFile(file, []byte(lines), 0o600))
	r := run(t, []string{"job", "add", "-f", file}, results(
		`{"index":0,"id":"a","status":201,"state":"ready"}`, `{"index":1,"id":"b","status":200,"state":"dead"}`,
		`{"index":2,"id":"c","status":200,"state":"delivered"}`, `{"index":3,"id":"d","status":200,"state":"running"}`))
	require.Zero(t, r.code)
	require.Equal(t, "line 2, b was registered before, and is dead: ringback job revive b sends it again\n"+
		"4 registered, 3 of them before (ended, and not sent again: 2); 0 refused\n", r.stderr)
}

func TestJobAdd_SendsLinesAgainThatCouldNotBeTaken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.jsonl")
	require.NoError(t,
		os.WriteFile(file, []byte("{\"id\": \"a\"}\n\n{\"id\": \"b\", \"x\":  1}\n{\"id\": \"c\"}\n"), 0o600))
	first := results(`{"index":2,"error":{"status":422,"code":"invalid_field","detail":"d","errors":[{"field":"/url",`+
		`"detail":"is required"}]}}`,
		`{"index":0,"status":201}`, `{"index":1,"error":{"status":503,"code":"store_unavailable","retry_after_ms":1}}`)
	r := run(t, []string{"job", "add", "-f", file}, first, results(`{"index":0,"status":201}`))
	require.Equal(t, failed, r.code)
	require.Equal(t, "line 4, c: d (422 invalid_field); /url is required\n2 registered, 1 refused\n", r.stderr)
	require.JSONEq(t, `{"id":"b","x":1}`, r.bodies[1])
	require.NoError(t, os.WriteFile(file, []byte("{\"id\": \"a\"}\nnot json\n"), 0o600))
	r = run(t, []string{"job", "add", "-f", file}, says(200, `{}`))
	require.Equal(t, Usage, r.code)
	require.Contains(t, r.stderr, "line 2 is not a JSON object")
}

// A file is registered under the same ids when the command is repeated.
func TestJobAdd_CanBeRepeated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.jsonl")
	require.NoError(t, os.WriteFile(file, []byte("{\"n\": 1}\n{\"n\": 1}\n{\"id\": \"own\"}\n"), 0o600))
	ids := func(args ...string) (result, []string) {
		r := run(t, append([]string{"job", "add", "-f", file}, args...),
			results(`{"index":0,"status":200}`, `{"index":1,"status":201}`, `{"index":2,"status":201}`))
		var all []string
		for line := range strings.Lines(r.bodies[0]) {
			var sent struct{ ID string }
			require.NoError(t, json.Unmarshal([]byte(line), &sent))
			all = append(all, sent.ID)
		}
		require.Len(t, all, 3)
		return r, all
	}
	r, first := ids()
	require.Equal(t, "3 registered, 1 of them before; 0 refused\n", r.stderr)
	_, second := ids()
	require.Equal(t, first, second)
	require.NotEqual(t, first[0], first[1], "equal lines are two jobs")
	require.Equal(t, "own", first[2])
	_, third := ids("--new-ids")
	require.NotEqual(t, first[0], third[0])
	require.NoError(t, os.WriteFile(file, []byte("{\"n\": 1}\n{\"n\": 1}\n{\"id\": \"other\"}\n"), 0o600))
	_, fourth := ids()
	require.NotEqual(t, first[0], fourth[0], "another file has other jobs")
}

func TestJobAdd_SaysWhatIsRegisteredWhenItFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.jsonl")
	large := strings.Repeat("x", 3<<20)
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "{\"body\": %q}\n\n{\"body\": %q}\n", large, large), 0o600))
	r := run(t, []string{"job", "add", "-f", file}, results(`{"index":0,"status":201}`),
		says(413, `{"code":"too_large","detail":"d"}`))
	require.Len(t, r.requests, 2, "requests are bounded in bytes")
	require.Equal(t, refused, r.code)
	require.Contains(t, r.stderr, "lines 1 to 2 are done: 1 registered, 0 refused; of the lines from 3 on, up to 1 "+
		"may be registered\nrepeat the command to go on: ")
	require.NoError(t, os.WriteFile(file, []byte("{}\nnot json\n"), 0o600))
	r = run(t, []string{"job", "add", "-f", file}, says(200, `{}`))
	require.Equal(t, Usage, r.code)
	require.Empty(t, r.requests, "a file that is not valid is refused as a whole")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, os.WriteFile(file, []byte("{}\n"), 0o600))
	r = runUntil(ctx, t, []string{"job", "add", "-f", file}, says(200, `{}`))
	require.Contains(t, r.stderr, "no line is done; of the lines from 1 on, up to 1 may be registered\n")
}

// A line is done when those before it are.
func TestJobAdd_CountsLinesUpToTheFirstWithoutAResult(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.jsonl")
	require.NoError(t, os.WriteFile(file, []byte("{}\n\n{}\n{}\n{}\n"), 0o600))
	r := run(t, []string{"job", "add", "-f", file},
		results(`{"index":0,"status":201}`, `{"index":2,"status":201}`,
			`{"index":3,"error":{"status":422,"code":"c"}}`), says(403, `{"code":"forbidden","detail":"d"}`))
	require.Equal(t, refused, r.code)
	require.Contains(t, r.stderr,
		"lines 1 to 2 are done: 1 registered, 0 refused; of the lines from 3 on, up to 3 may be registered\n")
}

func TestJobAdd_SendsLinesWithoutAResultAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.jsonl")
	require.NoError(t, os.WriteFile(file, []byte("{\"id\": 5}\n{\"id\": \"b\"}\n"), 0o600))
	r := run(t, []string{"job", "add", "-f", file}, results(), results(`{"index":0,"status":201}`))
	require.Equal(t, failed, r.code)
	require.Contains(t, r.stderr, "line 1: is not a JSON object with an id: ")
	require.Contains(t, r.stderr, "\n1 registered, 1 refused\n")
	require.Equal(t, []string{"POST /v1/batch", "POST /v1/batch"}, r.requests)
	r = run(t, []string{"work", "wait", "w"}, says(200, `{}`))
	require.Contains(t, r.stderr, "ringback: the answer is not work\n")
}

func TestJobAdd_PrintsAFileForCurlWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("{\"id\": \"a\"}\n", maxPrinted)), 0o600))
	r := run(t, []string{"job", "add", "-f", file, "-o", "curl"}, says(200, `{}`))
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, maxPrinted, strings.Count(r.stdout, `"id"`))
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("{\"id\": \"a\"}\n", maxPrinted+1)), 0o600))
	r = run(t, []string{"job", "add", "-f", file, "-o", "curl"}, says(200, `{}`))
	require.Equal(t, Usage, r.code)
	require.Empty(t, r.stdout, "not a part of the file")
}

// A registration whose answer is lost can be repeated, if the id is known.
func TestSend_NamesTheIDWhenItFails(t *testing.T) {
	for _, args := range [][]string{{"send", "http://x/"}, {"job", "add", "--url", "http://x/"}} {
		ctx, stop := context.WithCancel(t.Context())
		r := runUntil(ctx, t, args, func(w http.ResponseWriter) {
			stop()
			says(503, `{"code":"store_unavailable"}`)(w)
		})
		var job struct{ ID string }
		require.NoError(t, json.Unmarshal([]byte(r.bodies[0]), &job))
		require.Contains(t, r.stderr,
			job.ID+" may be registered: the same command with --id "+job.ID+" registers it once\n")
	}
	r := run(t, []string{"send", "http://x/", "--wait"}, says(201, `{"id":"i"}`), says(503, `{"code":"x"}`),
		says(200, `{"id":"i","state":"delivered","attempts_made":1}`))
	require.Zero(t, r.code, "it is registered, and the server is away for a moment")
	r = run(t, []string{"send", "http://x/", "--wait"}, says(201, `{"id":"i"}`), says(401, `{"code":"x"}`))
	require.Contains(t, r.stderr, "i is registered: ringback wait i waits for its end\n")
	r = run(t, []string{"send", "http://x/"}, says(422, `{"code":"x"}`))
	require.NotContains(t, r.stderr, "may be registered")
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestSend_NamesNoIDWhenNothingWasSent(t *testing.T) {
	for _, c := range []struct {
		lost int // the try whose connection breaks; the others are refused
		says bool
	}{{0, false}, {1, true}, {registrations, true}} {
		synctest.Test(t, func(t *testing.T) {
			var stderr strings.Builder
			e := &Environment{Stderr: &stderr, Stdout: io.Discard, Variables: map[string]string{}}
			out, err := new(formatFlags).ProvidePrinter(e)
			require.NoError(t, err)
			try := 0
			to, err := client.New("http://a", client.Options{
				HTTP: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
					if try++; try == c.lost {
						return nil, &net.OpError{Op: "read", Err: io.ErrUnexpectedEOF}
					}
					return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
				})},
			})
			require.NoError(t, err)
			s := &session{Environment: e, client: to, out: out}
			_, _, err = s.registerOne(t.Context(), &apiRequest{
				Method: http.MethodPost, Path: "/v1/jobs",
				Body: requestFields{"id": json.RawMessage(`"j"`)},
			})
			require.Equal(t, Unavailable, codeOf(err))
			require.Equal(t, registrations, try)
			require.Equal(t, c.says, strings.Contains(stderr.String(), "j may be registered"), stderr.String())
		})
	}
}

func TestPut_NeedsSettings(t *testing.T) {
	for _, args := range [][]string{{"topic", "put", "t"}, {"lane", "put", "t", "l"}, {"namespace", "put", "n"}, {
		"schedule", "put", "s", "--if-revision", "1",
	}} {
		r := run(t, args, says(200, `{}`))
		require.Equal(t, Usage, r.code, args)
		require.Empty(t, r.requests)
		require.Contains(t, r.stderr, "it replaces all settings")
	}
	r := run(t, []string{"namespace", "put", "n", "quota=null"}, says(200, `{}`))
	require.Zero(t, r.code)
}

func TestStats_WatchesUntilItIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r := runUntil(ctx, t, []string{"stats", "--watch", "--every", "1s"}, says(200,
		`{"totals":{"registered":1,"dead":1},"items":[]}`),
		says(200, `{"minutes":[{"delivered":991,"failed":9,"dead":1}]}`),
		func(w http.ResponseWriter) {
			says(200, `{"totals":{},"items":[{"topic":"t","dead":1}]}`)(w)
			stop()
		})
	require.Equal(t, "1 job: 0 scheduled, 0 ready, 0 running, 0 delivered, 1 dead, 0 cancelled; "+
		"in the last hour 9 of 1,000 attempts failed, and 1 job died\n", strings.SplitAfter(r.stdout, "\n")[0])
}

func TestStats_ShowTheLastHour(t *testing.T) {
	r := run(t, []string{"stats"}, says(200, `{"totals":{"registered":1,"dead":1},"items":[]}`),
		says(200, `{"minutes":[]}`), says(200, `{"totals":{},"items":[{"topic":"t","dead":1}]}`),
		says(200, `{"items":[{"topic":"t","minutes":[{"delivered":991,"failed":9,"dead":1}]}]}`))
	require.Zero(t, r.code, r.stderr)
	require.Regexp(t, `FAILED%\s+DIED .*\nt .* 1\s+1 `, r.stdout)
	require.Equal(t, "GET /v1/history?by=minutes&topics=t", r.requests[3])
}

func TestStats_AreThereWithoutAHistory(t *testing.T) {
	older := says(404, `{"code":"no_such_path"}`)
	r := run(t, []string{"stats"}, says(200, `{"totals":{"registered":1,"dead":1},"items":[]}`), older,
		says(200, `{"totals":{},"items":[{"topic":"t","dead":1}]}`), older)
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "1 dead, 0 cancelled\n")
}

func TestWait_OutlivesAServerThatIsAway(t *testing.T) {
	r := run(t, []string{"wait", "j"}, says(200, `{"state":"ready"}`), says(503, `{"code":"x"}`),
		says(200, `{"id":"j","topic":"t","state":"delivered","attempts_made":2}`))
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, "j of topic t is delivered after 2 attempts\n", r.stdout)
	require.Equal(t, "GET /v1/jobs/j?wait=1m", r.requests[0])
	r = run(t, []string{"wait", "j"}, says(200, `{"state":"cancelled"}`))
	require.Equal(t, failed, r.code)
	r = run(t, []string{"wait", "j", "--timeout", "1ms"}, says(200, `{"state":"running"}`))
	require.Equal(t, Timeout, r.code)
	require.Contains(t, r.stderr, "ringback explain j")
}

// A lost terminal, or Ctrl-C, ends the command and not the work.
func TestWork_GoesOnWithoutTheCommand(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped by a signal")
	work := `{"id":"w","action":"purge","state":"running","total":10,"done":4}`
	r := runUntil(ctx, t, []string{"dead", "purge", "--all", "--yes"}, says(202, work), func(w http.ResponseWriter) {
		says(200, work)(w)
		stop(stopped)
	})
	require.Equal(t, failed, r.code)
	require.Contains(t, r.stderr,
		"the work goes on in the server: ringback work wait w shows it, ringback work stop w stops it")
	require.Contains(t, r.stderr, stopped.Error())
	r = run(t, []string{"work", "wait", "w"}, says(200, work), says(503, `{"code":"x"}`), says(200,
		`{"id":"w","action":"purge","state":"done","ended_at":"2030-01-31T08:00:00Z","done":9,"failed":1,`+
			`"failures":[{"id":"j","reason":"r"}]}`))
	require.Equal(t, failed, r.code, "a job failed")
	require.Equal(t, "purge w is done: 9 done, 1 failed, 0 skipped\n", r.stdout)
	require.Contains(t, r.stderr, "  j r\n")
}

func TestWork_AsksOnlyIfThereIsSomethingToDo(t *testing.T) {
	r := run(t, []string{"dead", "purge", "--all"}, says(200, `{"matched":0,"exact":true}`))
	require.Zero(t, r.code)
	require.Contains(t, r.stderr, "no job matches")
	r = run(t, []string{"dead", "purge", "--all"},
		says(200, `{"matched":1234567,"exact":false,"groups":[{"topic":"t","reason":"r","count":1234567}]}`))
	require.Equal(t, Usage, r.code)
	require.Contains(t, r.stderr, "1,234,567  t  r\n")
	require.Len(t, r.requests, 1, "only the dry run")
}

func TestList_GoesOnUntilTheLimit(t *testing.T) {
	page := func(cursor string, ids ...string) func(w http.ResponseWriter) {
		var items []map[string]string
		for _, id := range ids {
			items = append(items, map[string]string{"id": id})
		}
		raw, _ := json.Marshal(map[string]any{"items": items, "next_cursor": cursor})
		return says(200, string(raw))
	}
	r := run(t, []string{"job", "list", "--limit", "3", "--jq", ".id"}, page("c1", "a"),
		page("c2"), page("c3", "b", "c"))
	require.Equal(t, "a\nb\nc\n", r.stdout)
	require.Equal(t, []string{
		"GET /v1/jobs?limit=3", "GET /v1/jobs?cursor=c1&limit=2",
		"GET /v1/jobs?cursor=c2&limit=2",
	}, r.requests)
	r = run(t, []string{"job", "list", "--limit", "0", "-o", "json", "--jq", ".id"}, page("c1", "a"), page("", "b"))
	require.Equal(t, "a\nb\n", r.stdout)
	r = run(t, []string{"job", "list", "--limit", "1"}, page("c1", "a"))
	require.Contains(t, r.stderr, "--limit 0 lists all")
	r = run(t, []string{"job", "list", "-o", "json"}, page("c1", "a"), says(503, `{"code":"x"}`))
	require.Equal(t, Unavailable, r.code)
	require.JSONEq(t, `[{"id":"a"}]`, r.stdout, "what was read is whole")
}

func TestTail_SelectsAndConnectsAgain(t *testing.T) {
	events := func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, `: comment

event: attempt
data: {"id":"a","topic":"t","lane":"l","n":2,"verdict":"again","status":503,"duration_ms":12.3,`+
			`"started_at":"2030-01-31T08:00:00Z","labels":{"c":"1"}}

event: attempt
data: {"id":"b","verdict":"delivered","labels":{"c":"1"}}

event: change
data: {"at":"2030-01-31T08:00:01Z","kind":"dead","id":"d","topic":"t","lane":null,"reason":"expired","labels":{"c":"2"}}

event: skipped
data: {"skipped": 1250}

`)
	}
	r := run(t, []string{"tail", "--failed", "--label", "c=1", "--topic", "t", "--count", "2"}, events)
	require.Zero(t, r.code)
	require.Equal(t,
		"08:00:00.000  again     a  t/l  attempt 2  status 503  12ms\n          … 1250 more updates\n", r.stdout)
	require.Equal(t, []string{"GET /v1/stream?topic=t"}, r.requests)
	r = run(t, []string{"tail", "--failed", "--count", "2", "-o", "jsonl", "--jq", "[.update, .id]"}, events)
	require.Equal(t, "[\"attempt\",\"a\"]\n[\"change\",\"d\"]\n", r.stdout)
	r = run(t, []string{"tail"},
		says(200, "event: problem\ndata: {\"code\": \"token_expired\", \"status\": 401, \"detail\": \"d\"}\n\n"))
	require.Equal(t, refused, r.code)
}

func TestCheck_JudgesAsPluginsDo(t *testing.T) {
	ready := says(200, `{"status":"ready"}`)
	stats := says(200, fmt.Sprintf(`{"totals":{"scheduled":5,"dead":3,"breakers_open":1,"oldest_due_at":%q},`+
		`"items":[]}`, time.Now().Add(-90*time.Second).Format(time.RFC3339)))
	for flags, code := range map[string]int{
		"--dead 4,5": 0, "--dead 3,5": 1, "--dead 1,3": 2, "--dead 3": 2, "--oldest-due 1m,10m": 1,
		"--oldest-due 30s,1m": 2, "--breakers 1,2 --pending 6,7": 1, "--dead x": 3,
	} {
		r := run(t, append([]string{"check"}, strings.Fields(flags)...), ready, stats)
		require.Equal(t, code, r.code, "%s: %s", flags, r.stdout)
		require.True(t, strings.HasPrefix(r.stdout, "RINGBACK "+CheckState(code).String()+" - "), r.stdout)
	}
	const some = `{"topic":"t","lane":"l","health":{"failed_percent":57}}`
	const all = some + `,{"topic":"t","lane":"m","health":{"failed_percent":90}}`
	for failing, code := range map[string]int{"": 1, some: 1, all: 2} {
		r := run(t, []string{"check"}, ready, stats, says(200, `{"items":[]}`), says(200, `{"items":[`+failing+`]}`))
		require.Equal(t, code, r.code, r.stdout)
		require.Contains(t, r.stdout, "oldest_due 1m30s (WARNING)")
		require.Contains(t, r.requests, "GET /v1/lanes/troubled?code=failing&limit=500")
		require.Contains(t, r.stdout, "failing=")
		require.Equal(t, code == 2, strings.Contains(r.stdout, "failing 90% of lane m of t (CRITICAL)"), r.stdout)
	}
	r := run(t, []string{"check", "--failing", "50%,90%"}, ready, stats, says(200, `{"items":[]}`))
	require.Zero(t, r.code, r.stdout)
	r = run(t, []string{"check"}, says(503, `{"code":"not_ready","detail":"the store is away"}`))
	require.Equal(t, int(CheckCritical), r.code)
	require.Contains(t, r.stdout, "not ready: 503 not_ready: the store is away")
	r = run(t, []string{"check", "--dead", "2,9", "--dead-since", "1h"}, ready, stats,
		says(200, `{"items":[{"count":1},{"count":1}]}`))
	require.Equal(t, int(CheckWarning), r.code)
	r = run(t, []string{"check", "--dead", "2,9", "--dead-since", "1h"}, ready, stats,
		says(200, `{"items":[{"count":1}],"exact":false}`))
	require.Equal(t, "RINGBACK UNKNOWN - at least 1 job died since then, and there are too many to count: use a "+
		"shorter --dead-since, or a --topic\n", r.stdout)
}

// Monitoring and services run commands without a home.
func TestFind_NeedsNoHome(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_CONFIG_HOME", "")
	to, err := (&connection{targetFlags: targetFlags{Server: "http://a"}}).find(&Environment{})
	require.NoError(t, err)
	require.Equal(t, "http://a", to.Server)
}

func TestContextAdd_RemovesTheTokenThatIsReplaced(t *testing.T) {
	r := run(t, []string{"context", "add", "prod", "--server", "http://a", "--token-stdin"}, says(200, ""))
	require.Equal(t, failed, r.code, "the standard input is empty")
	dir, err := settingsDir()
	require.NoError(t, err)
	file, err := addToken(dir, "prod", "secret")
	require.NoError(t, err)
	require.NoError(t, (&addContext{Name: "prod", At: "http://a"}).RunCommand(&Environment{Stdout: io.Discard}))
	require.NoFileExists(t, file)
}

func TestTimes_AreAgoOrAhead(t *testing.T) {
	r := run(t, []string{
		"job", "list", "--due-before", "+1h", "--due-after", "1d", "--created-before",
		"2030-01-31T08:00:00Z",
	}, says(200, `{"items":[]}`))
	u, err := url.Parse(strings.Fields(r.requests[0])[1])
	require.NoError(t, err)
	for name, want := range map[string]time.Duration{"due_before": time.Hour, "due_after": -24 * time.Hour} {
		at, err := time.Parse(time.RFC3339Nano, u.Query().Get(name))
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(want), at, time.Minute)
	}
	require.Equal(t, "2030-01-31T08:00:00Z", u.Query().Get("created_before"))
	r = run(t, []string{"check", "--dead-since", "1d", "--timeout", "1m"}, says(200, `{"items":[],"totals":{}}`))
	require.Zero(t, r.code, r.stdout+r.stderr)
	for _, text := range []string{"soon", "-5s"} {
		r = run(t, []string{"wait", "j", "--timeout=" + text}, says(200, `{}`))
		require.Equal(t, Usage, r.code)
		require.Empty(t, r.requests)
	}
}

func TestDiff_RefusesAMissingFile(t *testing.T) {
	for _, command := range []string{"diff", "apply"} {
		r := run(t, []string{command, "-f", filepath.Join(t.TempDir(), "nope.yaml")}, says(200, `{"items":[]}`))
		require.Equal(t, Usage, r.code, command)
		require.Contains(t, r.stderr, "no such file")
	}
}

func TestDelete_CountsBeforeItAsks(t *testing.T) {
	r := run(t, []string{"topic", "delete", "a/b", "--purge"}, says(200, `{}`),
		says(200, `{"scheduled":1200,"ready":4,"dead":88,"items":[]}`))
	require.Equal(t, Usage, r.code, "there is no terminal")
	require.Equal(t, []string{"GET /v1/topics/a%2Fb", "GET /v1/topics/a%2Fb/stats?limit=1"}, r.requests)
	require.Contains(t, r.stderr, "       1,204  unfinished\n          88  dead\n")
	r = run(t, []string{"namespace", "delete", "shop", "--purge"},
		says(200, `{"totals":{"scheduled":1,"dead":2},"items":[]}`))
	require.Equal(t, []string{"GET /v1/stats?limit=1"}, r.requests)
	require.Contains(t, r.stderr, "           1  unfinished\n           2  dead\n")
	r = run(t, []string{"topic", "delete", "t", "--purge", "--yes"}, says(200, ""))
	require.Equal(t, []string{"GET /v1/topics/t", "DELETE /v1/topics/t?purge=true"}, r.requests)
}

func TestDelete_SaysWhatFilesManage(t *testing.T) {
	for _, line := range []string{"topic delete t", "lane delete t l", "schedule delete s"} {
		args := append(strings.Fields(line), "--yes")
		const warning = "it is managed by shop: the next ringback apply of its files makes it again\n"
		r := run(t, args, says(200, `{"managed_by":"shop"}`), says(204, ""))
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, warning, r.stderr)
		require.Len(t, r.requests, 2)
		r = run(t, args[:len(args)-1], says(200, `{"managed_by":"shop"}`))
		require.True(t, strings.HasPrefix(r.stderr, warning), "before it asks: "+r.stderr)
		r = run(t, args, says(200, `{"managed_by":null}`), says(204, ""))
		require.Empty(t, r.stderr)
		r = run(t, args, says(404, `{"code":"not_found","detail":"d"}`))
		require.Equal(t, notFound, r.code)
		require.Len(t, r.requests, 2, "the removal says it")
		r = run(t, append(args, "-o", "curl"), says(200, `{}`))
		require.Empty(t, r.requests)
	}
}

func TestForward_HasNoCurl(t *testing.T) {
	r := run(t, strings.Fields("forward --topic t --to http://127.0.0.1:1/ -o curl"), says(200, `{"items":[]}`))
	require.Equal(t, Usage, r.code)
	require.Contains(t, r.stderr, "--output curl: there are many requests")
	require.Empty(t, r.requests)
}

func TestFiles_MayBeginWithAByteOrderMark(t *testing.T) {
	const mark = "\xef\xbb\xbf"
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "f")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	send := func(text string) []string { return []string{"send", "http://x/", "--id", "j", "-d", "@" + write(text)} }
	add := func(text string) []string { return []string{"job", "add", "-f", write(text)} }
	put := func(text string) []string { return []string{"topic", "put", "t", "-f", write(text)} }
	for _, c := range []struct {
		args []string
		body string // of the request
	}{
		{send(mark + `{"a": 1}`), `{"body": {"a": 1}, "id": "j", "url": "http://x/"}`},
		// That of another text may be for its reader, such as a table.
		{send(mark + "a;b"), `{"body_text": "` + mark + `a;b", "id": "j", "url": "http://x/"}`},
		{add(mark + `{"id": "j"}` + "\r\n" + mark), `{"id": "j"}` + "\n"},
		{put(mark + `{"workers": 5}`), `{"workers": 5}`},
	} {
		r := run(t, c.args, says(200, `{"index":0,"id":"j","status":201,"state":"ready"}`))
		require.Zero(t, r.code, "%q: %s", c.args, r.stderr)
		require.Equal(t, []string{c.body}, r.bodies)
	}
	for _, utf16 := range []string{"\xff\xfe{\x00}\x00", "{\x00}\x00"} {
		for _, args := range [][]string{send(utf16), add(utf16), put(utf16)} {
			r := run(t, args, says(200, `{}`))
			require.Equal(t, Usage, r.code, args)
			require.Contains(t, r.stderr, "is in UTF-16: save or send it as UTF-8")
			require.Empty(t, r.requests)
		}
	}
}

func TestAPI_PrintsWhatIsNotJSONByteForByte(t *testing.T) {
	r := run(t, []string{"api", "GET", "/metrics"}, says(200, "a\x1b\r\u00a0b\xff\n"))
	require.Equal(t, "a\x1b\r\u00a0b\xff\n", r.stdout)
}

func TestOutput_NamesItsFormats(t *testing.T) {
	r := run(t, []string{"whoami", "-o", "yaml"}, says(200, `{}`))
	require.Equal(t, Usage, r.code)
	require.Contains(t, r.stderr, `ringback: --output: "yaml" is not table, wide, json, jsonl or curl`)
}

func TestCheck_ShowsZeroIfNothingIsDue(t *testing.T) {
	for _, due := range []string{"null", `"2999-01-31T08:00:00Z"`} {
		r := run(t, []string{"check"}, says(200, `{}`), says(200, `{"totals":{"oldest_due_at":`+due+`},"items":[]}`))
		require.True(t, strings.HasPrefix(r.stdout, "RINGBACK OK - oldest_due 0s, "), r.stdout)
	}
}

func TestPlace_NamesServerContextAndNamespace(t *testing.T) {
	require.Equal(t, "on https://a, context prod, namespace shop",
		place(serverTarget{Server: "https://a", Context: "prod", Namespace: "shop"}))
	require.Equal(t, "on http://b", place(serverTarget{Server: "http://b"}))
}

func TestWaitOf_ReadsTheQueryOfThePathAndTheBody(t *testing.T) {
	require.Equal(t, time.Minute, waitOf(&apiRequest{Path: "/v1/jobs/x?wait=60s"}))
	require.Zero(t, waitOf(&apiRequest{Path: "/v1/jobs/x"}))
	for body, wait := range map[string]time.Duration{
		`{"wait": "60s"}`: time.Minute, `{"max": 1, "wait": 45}`: time.Minute,
		`{"done": [], "next": {"wait":"1s"}}`: time.Minute, `{"max": 1}`: 0, ``: 0,
	} {
		require.Equal(t, wait, waitOf(&apiRequest{Path: "/v1/topics/t/lease", Raw: []byte(body)}), body)
	}
}

func TestSimulate_FollowsItsFlags(t *testing.T) {
	for _, flags := range []string{
		"--ladder 1x", "--ladder 40d", "--retries 1001", "--jitter 2", "--took x", "--start tomorrow",
	} {
		r := run(t, append([]string{"simulate"}, strings.Fields(flags)...), says(200, ""))
		require.Equal(t, Usage, r.code, flags)
		require.Empty(t, r.requests)
	}
	r := run(t, strings.Fields("simulate --ladder 1h --expires-in 90m --took 10m --jq .note"), says(200, ""))
	require.Equal(t, "\n\ndead: exhausted\n", r.stdout)
	r = run(t, strings.Fields("simulate --ladder 1h --retries 5 --expires-in 90m --took 10m --jq .note"), says(200, ""))
	require.Equal(t, "\n\ndead: expired\n", r.stdout)
}

func TestComplete_FollowsTheCommandLine(t *testing.T) {
	first := func(words ...string) (names []string) {
		for _, line := range complete(parser().Model.Node, words, contextNames) {
			name, _, _ := strings.Cut(line, "\t")
			names = append(names, name)
		}
		return names
	}
	require.Equal(t, []string{"tail", "topic", "token"}, first("t"))
	require.Equal(t, []string{"run", "revive"}, first("job", "r"))
	require.Equal(t, []string{"--delay"}, first("job", "add", "--topic", "x", "--de"))
	require.Equal(t, []string{"json", "jsonl"}, first("stats", "-o", "j"))
	require.Empty(t, first("job", "add", "-f", ""), "a file")
	require.Equal(t, []string{"revive", "run"}, first("work", "start", "r"))
	require.NotContains(t, first(""), "__complete")
}

// Every operation of the API has a command, or a reason.
func TestCommands_CoverTheAPI(t *testing.T) {
	covered := map[string]string{
		"POST /v1/jobs":                "send, job add",
		"POST /v1/batch":               "job add --file",
		"GET /v1/stats":                "stats",
		"GET /v1/history":              "stats",
		"GET /v1/topics/{topic}/stats": "stats TOPIC",
		"GET /readyz":                  "check",
		"GET /v1/topics/{topic}/lanes": "lane list",
		// Without a command: ringback api makes these requests.
		"POST /v1/topics/{topic}/lease":  "consumers lease jobs",
		"POST /v1/leases":                "consumers settle them",
		"POST /v1/events/batch":          "programs send many",
		"GET /v1/topics/{topic}/history": "for charts",
		"GET /v1/version":                "", "GET /healthz": "", "GET /metrics": "", "GET /problems": "", "GET /": "",
		"GET /openapi.json": "", "GET /openapi.yaml": "",
	}
	for _, command := range parser().Model.Leaves(false) {
		if call := command.Tag.Get("call"); call != "" {
			covered[strings.ReplaceAll(call, "{name}", "{namespace}")] = command.Path()
		}
	}
	text, err := os.ReadFile("../api/openapi.yaml")
	require.NoError(t, err)
	var contract struct{ Paths map[string]map[string]any }
	require.NoError(t, yaml.Unmarshal(text, &contract))
	for path, item := range contract.Paths {
		for method := range item {
			if method != "parameters" {
				require.Contains(t, covered, strings.ToUpper(method)+" "+path)
			}
			delete(covered, strings.ToUpper(method)+" "+path)
		}
	}
	require.Empty(t, covered, "no such operations")
}

func TestPause_EndsWithTheCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.False(t, pause(canceled(t), time.Hour))
		require.True(t, pause(t.Context(), time.Second))
		require.Equal(t, time.Second, time.Since(began))
	})
}

func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestLaneHeld_ShowsTheFirstReason(t *testing.T) {
	const lane = `{"topic":"t","lane":"l","reasons":[{"code":"breaker_open","detail":"D.","until":null},` +
		`{"code":"lane_paused"}],
		"scheduled":1,"ready":2,"running":0,"oldest_due_at":null,"last_failure":{"job_id":"j","status":503,` +
		`"error_class":null}}`
	r := run(t, []string{"lane", "troubled", "--limit", "5"},
		says(200, `{"items":[`+lane+`],"total":1,"looked_at":7,"exact":true}`))
	require.Zero(t, r.code, r.stderr)
	require.Regexp(t, `(?m)^TOPIC +LANE +REASON.*\n^t +l +breaker_open .*503`, r.stdout)
	require.Empty(t, r.stderr)
	require.Equal(t, []string{"GET /v1/lanes/troubled?limit=5"}, r.requests)
	r = run(t, []string{"lane", "list", "--failing"}, says(200, `{"items":[`+lane+`],"total":1}`))
	require.Equal(t, []string{"GET /v1/lanes/troubled?code=failing&limit=50"}, r.requests)
	require.Contains(t, r.stdout, "breaker_open")
	require.Equal(t, Usage, run(t, []string{"lane", "list"}).code)
	r = run(t, []string{"lane", "list", "t"}, says(200, `{"items":[]}`))
	require.Equal(t, []string{"GET /v1/topics/t/lanes?limit=50"}, r.requests)
	r = run(t, []string{"lane", "troubled", "--topic", "t", "--lane", "l:1"},
		says(200, `{"items":[],"total":0,"looked_at":1,"exact":true}`))
	require.Equal(t, []string{"GET /v1/lanes/troubled?lane=l%3A1&limit=20&topic=t"}, r.requests)
	r = run(t, []string{"lane", "troubled"}, says(200, `{"items":[`+lane+`],"total":1,"looked_at":2000,"exact":false}`))
	require.Contains(t, r.stderr, "only 2,000 lanes were looked at")
}
