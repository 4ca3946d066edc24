package trypage_test

import (
	"bufio"
	"context"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/consoletest"
	"github.com/ringback/ringback/console/trypage"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/internal/inbox"
)

const script = `"><script>alert(1)</script><img src=x onerror=alert(1)>`

// fakeInbox is an inbox whose requests the test makes.
type fakeInbox struct {
	mu       sync.Mutex
	requests []inbox.Request
	keys     []string
	err      error
}

func (*fakeInbox) URL() string { return "http://fine.example" }

func (f *fakeInbox) Recent() []inbox.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests
}

// receive replaces the newest requests.
func (f *fakeInbox) receive(requests ...inbox.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = requests
}

func (f *fakeInbox) AddKey(text string) error {
	f.keys = append(f.keys, text)
	return f.err
}

func newSite(t *testing.T, in trypage.Inbox, tokens bool) *consoletest.Site {
	t.Helper()
	return consoletest.New(t, consoletest.Options{Pages: []web.Pages{trypage.New(in)}, Tokens: tokens})
}

func lead(t *testing.T, page string) string {
	t.Helper()
	found := regexp.MustCompile(`(?s)<p class="lead[^>]*>.*?</p>`).FindAllString(page, -1)
	require.Len(t, found, 1)
	return consoletest.Text(found[0])
}

// requireEscaped fails the test if a page has a tag of script.
func requireEscaped(t *testing.T, page string) {
	t.Helper()
	require.NotContains(t, page, "<script>alert")
	require.NotContains(t, page, "<img")
}

func TestTry_SendsAJobAndTellsHowItFares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, nil, false)
		page := site.Golden("no-inbox", "try")
		require.Equal(t, "Send a job and watch it arrive.", lead(t, page))
		require.Contains(t, page, "ringback listen")
		require.NotContains(t, page, "The inbox</h2>")

		sent := site.Post("try", "url", "https://down.example/hooks", "topic", "order", "body",
			`{"a": 12345678901234567890}`, "delay", "5s", "ladder", "1s, 2s")
		require.Regexp(t, `^\./try\?job=`, sent.Header().Get("Location"))
		page = site.Follow(sent).OK()
		require.Regexp(t, `^Job \w+ is on its way to down.example:443: attempt 1 comes in 5s\.$`, lead(t, page))
		require.Contains(t, page, `value="https://down.example/hooks"`)
		require.Contains(t, page, "{&#34;a&#34;: 12345678901234567890}")

		site.Advance(5100 * time.Millisecond)
		page = site.Follow(sent).OK()
		require.Regexp(t, `^Job \w+ did not get through yet: attempt 1 was answered 503 Service Unavailable, attempt `+
			`2 comes in 1s\.$`, lead(t, page))
		site.Advance(10 * time.Second)
		page = site.Follow(sent).OK()
		require.Regexp(t, `^Job \w+ is dead after 3 attempts, because all retries are used up\.$`, lead(t, page))
		require.Equal(t, 3, strings.Count(page, "answered 503 Service Unavailable after 20ms"))
	})
}

func TestTry_TellsOnWhichAttemptAJobArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, nil, false)
		sent := site.Post("try", "url", "https://fine.example/", "body", "no JSON")
		site.Advance(time.Second)
		page := site.Follow(sent).OK()
		require.Regexp(t,
			`^Job \w+ was delivered to fine.example:443 on attempt 1, 20ms after it was registered\.$`, lead(t, page))
		id := regexp.MustCompile(`job=(\w+)`).FindStringSubmatch(sent.Header().Get("Location"))[1]
		require.Contains(t, page, `href="./jobs/`+id+`"`)
		site.Golden("delivered", "try?job="+id)
		job, err := site.API.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, "no JSON", string(job.Body))

		blank := site.Follow(site.Post("try", "url", "https://fine.example/", "body", " \r\n ", "new_id", "blank")).OK()
		require.Contains(t, lead(t, blank), "Job blank ")
		job, err = site.API.Get(t.Context(), "blank")
		require.NoError(t, err)
		require.Empty(t, job.Body)

		site.Post("try", "url", "https://refused.example/", "ladder", "1h")
		sent = site.Post("try", "url", "https://refused.example/", "ladder", "1h", "topic", "other")
		site.Advance(time.Second)
		require.Contains(t, lead(t, site.Follow(sent).OK()),
			"attempt 1 failed (the connection was refused), attempt 2 comes in 1h")
		require.Equal(t, "There is no such job any more: send another one.", lead(t, site.Get("try?job=nothing").OK()))
		requireEscaped(t, site.Get("try?job=%22%3E%3Cscript%3Ealert(1)&url=%22%3E%3Cscript%3Ealert(1)").OK())
	})
}

// The reader sends a form again when the answer is lost or late.
func TestTry_SendsAJobOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, nil, false)
		id := regexp.MustCompile(`name="new_id" value="([^"]*)"`).FindStringSubmatch(site.Get("try").OK())[1]
		send := func(form ...string) (job string) {
			sent := site.Post("try", append(form, "new_id", id, "url", "https://fine.example/")...)
			site.Advance(time.Second)
			require.Contains(t, lead(t, site.Follow(sent).OK()), "Job ")
			return strings.TrimPrefix(sent.Header().Get("Location"), "./try?job=")
		}
		for range 2 {
			require.Equal(t, id, send("body", `{"a": 1}`, "delay", "1m", "ladder", "1s, 2s"))
		}
		other := send("body", `{"a": 2}`, "delay", "1m", "ladder", "1s, 2s")
		require.NotEqual(t, id, other, "the reader went back and changed the form")
		jobs, err := site.API.JobPage(t.Context(), client.Query{})
		require.NoError(t, err)
		require.Len(t, jobs.Items, 2)
	})
}

// The offer to sign the requests of a topic asks the API for the topic by its name.
func TestTry_KeepsWhatWasTypedWithATopicThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, new(fakeInbox), false)
		for _, topic := range []string{".", "..", "my topic", "a/b", "_work"} {
			page := site.Post("try", "url", "https://fine.example/", "topic", topic, "body",
				`"precious"`).Is(http.StatusUnprocessableEntity)
			require.Contains(t, page, `href="#f-topic"`, topic)
			require.Contains(t, page, "&#34;precious&#34;", topic)
			require.Contains(t, site.Get("try?"+url.Values{"topic": {topic}}.Encode()).OK(), `value="`+topic+`"`)
			require.Contains(t, site.Follow(site.Post("try/sign", "topic", topic)).OK(), "are not signed:", topic)
		}
	})
}

var (
	inputTags  = regexp.MustCompile(`<input type="(?:text|url|hidden)"[^>]* name="([a-z_]+)" value="([^"]*)"`)
	textareas  = regexp.MustCompile(`(?s)<textarea [^>]*name="([a-z_]+)"[^>]*>\n(.*?)</textarea>`)
	selections = regexp.MustCompile(`(?s)<select [^>]*name="([a-z_]+)"[^>]*>(.*?)</select>`)
	selected   = regexp.MustCompile(`value="([^"]*)" selected`)
)

// sendForm sends the form that sends a job as a page shows it, with the line ends of browsers.
func sendForm(t *testing.T, site *consoletest.Site, page string) (job *client.JobInfo) {
	t.Helper()
	_, form, ok := strings.Cut(page, `action="./try" data-once>`)
	require.True(t, ok)
	form, _, _ = strings.Cut(form, "</form>")
	var pairs []string
	for _, found := range append(inputTags.FindAllStringSubmatch(form, -1),
		textareas.FindAllStringSubmatch(form, -1)...) {
		pairs = append(pairs, found[1], strings.ReplaceAll(html.UnescapeString(found[2]), "\n", "\r\n"))
	}
	for _, found := range selections.FindAllStringSubmatch(form, -1) {
		if value := selected.FindStringSubmatch(found[2]); value != nil {
			pairs = append(pairs, found[1], value[1])
		}
	}
	sent := site.Post("try", pairs...)
	site.Follow(sent).OK()
	id := regexp.MustCompile(`job=(\w+)`).FindStringSubmatch(sent.Header().Get("Location"))[1]
	job, err := site.API.Get(t.Context(), id)
	require.NoError(t, err)
	return job
}

func TestTry_SendsTheBodyOfAJobAgainAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, nil, false)
		for name, job := range map[string]client.Job{
			"json": {Body: client.Text("{\"a\":  12345678901234567890}\n"), ContentType: "application/json"},
			"json-of-a-kind": {Body: client.Text(`{"a": 1}`), ContentType: "application/cloudevents+json; " +
				"charset=utf-8"},
			"no-json":         {Body: client.Text(`{"a": `), ContentType: "application/json"},
			"text":            {Body: client.Text("\ngood morning ")},
			"text-like-json":  {Body: client.Text("123")},
			"xml":             {Body: client.Text("<a>\n</a>"), ContentType: "application/xml"},
			"csv":             {Body: client.Text("a,b\r\n1,2\r\n"), ContentType: "text/csv"},
			"form":            {Body: client.Text("a=1&b=%20"), ContentType: "application/x-www-form-urlencoded"},
			"bytes":           {Body: []byte("\x00\xff\xfe")},
			"bytes-of-a-kind": {Body: []byte("\x00\xff\xfe"), ContentType: "image/png"},
			"spaces":          {Body: client.Text(" \n "), ContentType: "text/plain"},
			"long": {Body: client.Text("<" + strings.Repeat("a", 70_000) +
				">"), ContentType: "application/xml"},
			"none": {},
		} {
			job.ID, job.URL = name, "https://fine.example/"
			site.Register(job)
			before, err := site.API.Get(t.Context(), name)
			require.NoError(t, err)
			again := sendForm(t, site, site.Get("try?job="+name).OK())
			require.Equal(t, string(before.Body), string(again.Body), name)
			require.Equal(t, before.ContentType, again.ContentType, name)
		}
		page := site.Post("try", "url", "https://fine.example/", "body", "?", "body_as", "base64", "content_type",
			"image/png").Is(http.StatusUnprocessableEntity)
		require.Contains(t, page, `value="base64" selected`)
		require.Contains(t, page, `value="image/png"`)
		require.NotContains(t, site.Get("try").OK(), "content_type", "the form is short unless it must be longer")
		site.Post("try", "url", "https://fine.example/", "body_as", "kept", "source", "nothing").Is(http.StatusNotFound)
		site.Post("try", "url", "https://fine.example/", "body_as", "kept").Is(http.StatusUnprocessableEntity)
	})
}

func TestTry_DoesNotSendBodiesAgainThatTheReaderMayNotSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, nil, true)
		site.SignIn(consoletest.RootToken)
		site.Register(client.Job{
			ID: "a", URL: "https://fine.example/", Body: client.Text("<a/>"),
			ContentType: "application/xml",
		})
		blind, err := site.API.CreateToken(t.Context(),
			client.TokenRequest{Name: "blind", Role: "publish", Bodies: new(false)})
		require.NoError(t, err)
		site.SignIn(blind.Token)
		require.NotContains(t, site.Get("try?job=a").OK(), "kept")
		site.Post("try", "url", "https://fine.example/", "body_as", "kept", "source", "a").Is(http.StatusForbidden)
	})
}

func TestTry_KeepsTheFormWhenItIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, new(fakeInbox), false)
		page := site.Post("try", "url", script, "topic", script, "body", script, "delay", script, "ladder",
			script).Is(http.StatusUnprocessableEntity)
		requireEscaped(t, page)
		require.Contains(t, page, `href="#f-delay"`)
		require.Contains(t, page, "<h2>The job was not sent</h2>")
		page = site.Post("try", "url", script, "topic", script, "body", script).Is(http.StatusUnprocessableEntity)
		requireEscaped(t, page)
		require.Contains(t, page, `href="#f-url"`)
		require.Contains(t, page, `href="#f-topic"`)
	})
}

// hostile is a request whose every text is an attack.
func hostile(n int64) inbox.Request {
	return inbox.Request{
		N: n, At: time.Now(), Method: script, Path: "/" + script, ID: script, Attempt: script, Answer: "200",
		Body: script + "\xff", BodyBytes: 5000, Signature: inbox.Signature{Verdict: inbox.Wrong, Detail: script},
		Headers:     []inbox.Header{{Name: script, Value: script}, {Name: "Authorization", Value: "hunter2"}},
		MoreHeaders: 3,
	}
}

func TestInbox_IsShownBesideTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &fakeInbox{requests: []inbox.Request{
			{
				N: 4, At: time.Now(), Method: "POST", Path: "/flaky", ID: "a-1", Attempt: "2", Answer: "200",
				Signature: inbox.Signature{Verdict: inbox.Verified, Key: "0123456789abcdef"},
				Body:      `{"hello": "world"}`, BodyBytes: 18,
			},
			{
				N: 3, At: time.Now(), Method: "POST", Path: "/", Answer: "500",
				Signature: inbox.Signature{Verdict: inbox.Unsigned},
			},
			{
				N: 2, At: time.Now(), Method: "POST", Path: "/", Answer: "200",
				Signature: inbox.Signature{Verdict: inbox.Unchecked},
			},
			hostile(1),
		}}
		site := newSite(t, in, false)
		site.Register(client.Job{ID: "a-1", URL: "http://fine.example/flaky"})
		site.Advance(time.Second)
		page := site.Golden("inbox", "try?job=a-1")
		requireEscaped(t, page)
		require.NotContains(t, page, "hunter2")
		text := consoletest.Text(page)
		require.Contains(t, text, "this job POST /flaky was answered 200 id a-1 , attempt 2 signature verified with "+
			"the secret 0123456789abcdef")
		require.Contains(t, text, "The beginning of 4.9 KiB.")
		require.Contains(t, text, "the inbox has no keys, so it was not verified")
		require.Contains(t, site.Get("try").OK(), `value="http://fine.example/"`)
		require.Contains(t, page,
			`href="./try?ladder=1s%2C&#43;2s&amp;topic=default&amp;url=http%3A%2F%2Ffine.example%2Fflaky"`)
		preset := site.Get("try?ladder=1s%2C+2s&url=http%3A%2F%2Ffine.example%2Fflaky").OK()
		require.Contains(t, preset, `value="http://fine.example/flaky"`)
		require.Contains(t, preset, `value="1s, 2s"`)

		site.Register(client.Job{ID: "b-1", Topic: "order", URL: "http://fine.example/"})
		require.Contains(t, site.Get("try?job=b-1").OK(),
			"ladder=1s%2C&#43;2s&amp;topic=order&amp;url=http%3A%2F%2Ffine.example%2Fflaky")

		in.requests = make([]inbox.Request, 50)
		for i := range in.requests {
			in.requests[i] = hostile(int64(i))
		}
		require.Equal(t, 20, strings.Count(site.Get("try").OK(), `id="request-`))
	})
}

func TestInbox_IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat(`"`, 256)
		r := inbox.Request{
			Method: long, Path: long, ID: long, Attempt: long, Answer: "200", Body: strings.Repeat(long, 4),
			BodyBytes: 1 << 10, Signature: inbox.Signature{Verdict: inbox.Wrong, Detail: long},
		}
		plain := inbox.Request{N: 1, Method: "POST", Path: "/", Answer: "200", MoreHeaders: 3}
		for range 20 {
			r.Headers = append(r.Headers, inbox.Header{Name: long, Value: long})
			plain.Headers = append(plain.Headers, inbox.Header{Name: "A", Value: "b"})
		}
		in := new(fakeInbox)
		for range 20 {
			in.requests = append(in.requests, r)
		}
		site := newSite(t, in, false)
		require.Less(t, len(site.Get("try").OK()), 100_000)
		in.requests = []inbox.Request{plain}
		page := site.Get("try").OK()
		require.Equal(t, 10, strings.Count(page, "<dt>A</dt>"))
		require.Contains(t, page, "13 more headers.")
	})
}

func TestInbox_IsShownToTheRootAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &fakeInbox{requests: []inbox.Request{{N: 1, Path: "/private-path", Body: "private body"}}}
		site := newSite(t, in, true)
		for _, role := range []string{"publish", "admin"} {
			site.SignIn(site.Token("z-"+role, role))
			page := site.Get("try").OK()
			require.NotContains(t, page, "private")
			require.Contains(t, page, "only a root token sees it here")
			require.NotContains(t, page, "try/sign")
			require.Contains(t, site.Get("try").OK(), "fails twice, then answers")
		}
		site.SignIn(consoletest.RootToken)
		require.Contains(t, site.Get("try").OK(), "private body")
	})
}

func TestTry_RefusesOtherRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := new(fakeInbox)
		site := newSite(t, in, true)
		for _, role := range []string{"read", "operate"} {
			site.SignIn(site.Token("z-"+role, role))
			site.Get("try").Is(http.StatusForbidden)
			site.Post("try", "url", "https://fine.example/").Is(http.StatusForbidden)
			site.Post("try/sign", "topic", "order").Is(http.StatusForbidden)
		}
		site.SignIn(site.Token("otto", "publish", "order.*"))
		require.Contains(t, site.Get("try").OK(), `value="order.try"`)
		sent := site.Post("try", "topic", "order.try", "url", "https://fine.example/")
		site.Advance(time.Second)
		require.Contains(t, lead(t, site.Follow(sent).OK()), "was delivered")
		site.Post("try", "topic", "mail", "url", "https://fine.example/").Is(http.StatusForbidden)
		site.Post("try/sign", "topic", "order.try").Is(http.StatusForbidden)
		site.SignIn(site.Token("ada", "admin"))
		require.Contains(t, site.Post("try/sign", "topic", "order").Is(http.StatusForbidden), "The inbox is the root")
		require.Empty(t, in.keys)
	})
}

func TestSign_GivesTheSecretToTheInboxAndShowsItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := new(fakeInbox)
		site := newSite(t, in, true)
		site.SignIn(consoletest.RootToken)
		require.Contains(t, site.Get("try").OK(), "Sign the requests of this topic")
		page := site.Follow(site.Post("try/sign", "topic", "order")).OK()
		require.Len(t, in.keys, 1)
		require.Contains(t, html.UnescapeString(page), `tabindex="0">`+in.keys[0]+`</pre>`)
		require.Contains(t, page, "Requests of the topic order are signed.")
		require.Contains(t, page, "Add a secret that the inbox knows")
		again := site.Get("try?topic=order").OK()
		require.NotContains(t, html.UnescapeString(again), in.keys[0])
		require.Contains(t, again, `value="order"`)
		page = site.Follow(site.Post("try/sign", "topic", script)).OK()
		require.Contains(t, page, "are not signed:")
		requireEscaped(t, page)
		in.err = context.Canceled
		require.Contains(t, site.Follow(site.Post("try/sign", "topic", "order")).OK(),
			"but the inbox cannot verify them")
		newSite(t, nil, false).Post("try/sign", "topic", "order").Is(http.StatusNotFound)
	})
}

func TestTry_IsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := new(fakeInbox)
		site := newSite(t, in, false)
		site.Register(client.Job{ID: "a", URL: "https://down.example/", Ladder: []time.Duration{3 * time.Second}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		res := site.Stream(ctx, "try?job=a&live=1")
		defer func() { _ = res.Body.Close() }()
		require.Equal(t, http.StatusOK, res.StatusCode)
		in.receive(inbox.Request{N: 7, Path: "/late"})
		var seen strings.Builder
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			seen.WriteString(lines.Text())
			if strings.Contains(seen.String(), "Job a is dead after 2 attempts") &&
				strings.Contains(seen.String(), "request-7") {
				return
			}
		}
		t.Fatal(seen.String())
	})
}
