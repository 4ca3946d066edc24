package client_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
)

// transport answers requests by a function.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := f(r)
	if res != nil {
		res.Request = r
	}
	return res, err
}

// response returns a response; header has names and values in turn.
func response(status int, body string, header ...string) *http.Response {
	h := make(http.Header)
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// faked returns a client whose requests are answered by a function.
func faked(t *testing.T, o client.Options, answer func(*http.Request) (*http.Response, error)) *client.Client {
	t.Helper()
	o.HTTP = &http.Client{Transport: transport(answer)}
	c, err := client.New("https://ringback.test", o)
	require.NoError(t, err)
	return c
}

// problem returns the JSON of a problem.
func problem(status int, code string) string {
	return fmt.Sprintf(`{"type": "/problems#%[2]s", "code": %[2]q, "title": "t", "status": %[1]d, "detail": "d", `+
		`"retry_after_ms": null, "errors": []}`, status, code)
}

const token = "rb_12345678_secretsecretsecret"

func TestNew_RefusesWhatCannotBeCalled(t *testing.T) {
	for server, o := range map[string]client.Options{
		"ringback.internal":                 {},
		"ftp://ringback.internal":           {},
		"http://":                           {},
		"http://user:pass@ringback.test":    {},
		"http://ringback.test?x=" + token:   {},
		"http://ringback.test/%zz" + token:  {},
		"http://ringback.test/#" + token:    {},
		"http://newline.ringback.internal":  {Token: token + "\n"},
		"http://negative.ringback.internal": {Timeout: -1},
	} {
		_, err := client.New(server, o)
		require.Error(t, err, server)
		require.NotContains(t, err.Error(), token)
		require.NotContains(t, err.Error(), "pass@")
	}
}

func TestToken_IsNotPrinted(t *testing.T) {
	o := client.Options{Token: token}
	c := faked(t, o, func(*http.Request) (*http.Response, error) { return nil, errors.New("no network") })
	_, err := c.Do(t.Context(), http.MethodGet, "/", nil, nil)
	require.Error(t, err)
	asJSON, jsonErr := json.Marshal(o)
	require.NoError(t, jsonErr)
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("made", "options", o, "client", c, "err", err)
	for _, text := range []string{
		fmt.Sprint(o), fmt.Sprintf("%v %+v %#v %s %q %x", o, o, o, o, o, o), fmt.Sprintf("%+v %#v", &o, &o),
		string(asJSON), logged.String(),
		fmt.Sprintf("%v %+v %#v %s", c, c, c, c), fmt.Sprintf("%+v %#v", *c, *c), err.Error(),
	} {
		require.NotContains(t, text, "secret")
		require.NotContains(t, text, fmt.Sprintf("%x", "secret"))
	}
}

func TestRedirect_IsNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		calls := 0
		c := faked(t, client.Options{Token: token}, func(r *http.Request) (*http.Response, error) {
			calls++
			require.Equal(t, "Bearer "+token, r.Header.Get("Authorization"))
			return response(status, "", "Location", "https://elsewhere.example/v1/jobs"), nil
		})
		_, err := c.Register(t.Context(), client.Job{})
		p, ok := errors.AsType[*client.Problem](err)
		require.True(t, ok)
		require.Equal(t, status, p.Status)
		require.Contains(t, p.Error(), "https://elsewhere.example")
		require.Equal(t, 1, calls)
	}
}

func TestAnswer_IsReadWithinBounds(t *testing.T) {
	endless := func(status int) func(*http.Request) (*http.Response, error) {
		return func(*http.Request) (*http.Response, error) {
			res := response(status, "")
			res.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"id": "`), endlessText{}))
			return res, nil
		}
	}
	_, err := faked(t, client.Options{}, endless(200)).Get(t.Context(), "a")
	require.ErrorContains(t, err, "larger than")
	_, err = faked(t, client.Options{}, endless(409)).Get(t.Context(), "a")
	require.ErrorContains(t, err, "larger than")
}

type endlessText struct{}

var manyLetters = strings.Repeat("a", 64<<10)

func (endlessText) Read(p []byte) (int, error) { return copy(p, manyLetters), nil }

func TestProblem_HasTheSentinelOfItsStatus(t *testing.T) {
	for status, want := range map[int]error{
		400: client.ErrInvalid, 401: client.ErrUnauthorized, 403: client.ErrForbidden,
		404: client.ErrNotFound, 409: client.ErrConflict,
		412: client.ErrRevision, 413: client.ErrInvalid, 415: client.ErrInvalid, 422: client.ErrInvalid,
	} {
		c := faked(t, client.Options{}, func(*http.Request) (*http.Response, error) {
			return response(status, problem(status, "some_code")), nil
		})
		_, err := c.Get(t.Context(), "a")
		require.ErrorIs(t, err, want)
		p, ok := errors.AsType[*client.Problem](err)
		require.True(t, ok)
		require.Equal(t, "some_code", p.Code)
		require.Equal(t, fmt.Sprintf("%d some_code: d", status), p.Error())
	}
}

func TestProblem_OfAProxyIsTold(t *testing.T) {
	for _, status := range []int{502, 504, 520, 530, 598, 599} {
		c := faked(t, client.Options{MaxRetries: -1}, func(*http.Request) (*http.Response, error) {
			return response(status, "<html>bad gateway"), nil
		})
		_, err := c.Get(t.Context(), "a")
		require.ErrorIs(t, err, client.ErrUnavailable)
		require.ErrorContains(t, err, "proxy")
	}
}

func TestProblem_NamesTheFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := newServer(t).Client().Register(t.Context(), client.Job{ID: "a.b", URL: "ftp://shop.example"})
		require.ErrorIs(t, err, client.ErrInvalid)
		p, _ := errors.AsType[*client.Problem](err)
		require.Len(t, p.Errors, 2)
		require.Contains(t, err.Error(), "/url")
		require.Contains(t, err.Error(), "/id")
	})
}

func TestRepeat_WaitsAsTheServerAsks(t *testing.T) {
	for status, code := range map[int]string{429: "quota", 503: "store_unavailable", 521: ""} {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Time
			var bodies []string
			c := faked(t, client.Options{}, func(r *http.Request) (*http.Response, error) {
				at = append(at, time.Now())
				body, _ := io.ReadAll(r.Body)
				bodies = append(bodies, string(body))
				if len(at) < 3 {
					return response(status, problem(status, code), "Retry-After", "7"), nil
				}
				return response(201, `{"id": "a"}`), nil
			})
			_, err := c.Register(t.Context(), client.Job{Body: strings.NewReader("read once")})
			require.NoError(t, err)
			require.Len(t, at, 3)
			for i := range 2 {
				require.GreaterOrEqual(t, at[i+1].Sub(at[i]), 7*time.Second)
				require.Less(t, at[i+1].Sub(at[i]), 9*time.Second)
				require.Equal(t, bodies[0], bodies[i+1], "the same id and body")
			}
		})
	}
}

func TestRepeat_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := faked(t, client.Options{}, func(*http.Request) (*http.Response, error) {
			calls++
			return nil, io.ErrUnexpectedEOF
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := c.Register(ctx, client.Job{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.LessOrEqual(t, time.Since(began), time.Minute)
		require.Greater(t, calls, 8)
		require.Less(t, calls, 30)

		cancelled, stop := context.WithCancelCause(t.Context())
		why := errors.New("the program stops")
		time.AfterFunc(5*time.Second, func() { stop(why) })
		_, err = c.Get(cancelled, "a")
		require.ErrorIs(t, err, why)
	})
}

func TestRepeat_AsksAgainWhenNoAnswerComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := faked(t, client.Options{Timeout: time.Second}, func(r *http.Request) (*http.Response, error) {
			if calls++; calls == 1 {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return response(200, `{"state": "delivered"}`), nil
		})
		job, err := c.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, client.Delivered, job.State)
		require.Equal(t, 2, calls)
	})
}

func TestRepeat_IsOfNoUseWithoutTLSOrACertificate(t *testing.T) {
	for _, fault := range []error{
		http.ErrSchemeMismatch, &tls.CertificateVerificationError{Err: errors.New("unknown authority")},
	} {
		calls := 0
		c := faked(t, client.Options{}, func(*http.Request) (*http.Response, error) {
			calls++
			return nil, fault
		})
		_, err := c.Register(t.Context(), client.Job{})
		require.ErrorIs(t, err, fault)
		require.Equal(t, 1, calls)
	}
}

func TestRepeat_IsBoundedByMaxRetries(t *testing.T) {
	for retries, want := range map[int]int{-1: 1, 2: 3} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			c := faked(t, client.Options{MaxRetries: retries}, func(*http.Request) (*http.Response, error) {
				calls++
				return response(503, problem(503, "store_unavailable")), nil
			})
			_, err := c.Register(t.Context(), client.Job{})
			require.ErrorIs(t, err, client.ErrUnavailable)
			require.Equal(t, want, calls)
		})
	}
}

func TestRepeat_OfWhatAppliesTwiceOnlyIfNothingWasDone(t *testing.T) {
	once := map[string]func(context.Context, *client.Client) error{
		"StartWork": func(ctx context.Context, c *client.Client) error {
			_, err := c.StartWork(ctx, client.WorkOrder{})
			return err
		},
		"CreateToken": func(ctx context.Context, c *client.Client) error {
			_, err := c.CreateToken(ctx, client.TokenRequest{})
			return err
		},
		"AddSecret": func(ctx context.Context, c *client.Client) error {
			_, err := c.AddSecret(ctx, "t", "", client.NewSecret{})
			return err
		},
		"RunSchedule": func(ctx context.Context, c *client.Client) error {
			_, err := c.RunSchedule(ctx, "s")
			return err
		},
		"Revive": func(ctx context.Context, c *client.Client) error {
			_, err := c.Revive(ctx, "a", client.Revival{})
			return err
		},
		"DeleteTopic": func(ctx context.Context, c *client.Client) error { return c.DeleteTopic(ctx, "t", false) },
		"Edit if": func(ctx context.Context, c *client.Client) error {
			_, err := c.Edit(ctx, "a", client.Change{URL: "https://shop.example"}, client.IfRevision(3))
			return err
		},
	}
	for name, call := range once {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, first := range []func() (*http.Response, error){
					func() (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
					func() (*http.Response, error) { return response(503, problem(503, "store_unavailable")), nil },
				} {
					calls := 0
					c := faked(t, client.Options{},
						func(*http.Request) (*http.Response, error) { calls++; return first() })
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					require.Error(t, call(ctx, c))
					cancel()
					require.Equal(t, 1, calls, "it may have been done")
				}
				for _, first := range []string{problem(429, "quota"), problem(503, "overloaded")} {
					calls := 0
					c := faked(t, client.Options{}, func(*http.Request) (*http.Response, error) {
						if calls++; calls == 1 {
							var p client.Problem
							_ = json.Unmarshal([]byte(first), &p)
							return response(p.Status, first), nil
						}
						return response(200, `{}`), nil
					})
					require.NoError(t, call(t.Context(), c))
					require.Equal(t, 2, calls)
				}
			})
		})
	}
}

func TestRegister_BodiesArriveByteForByte(t *testing.T) {
	raw := "{ \"b\":1,\n\t\"a\": \"<&>\u2028\", \"big\": 12345678901234567890123 }"
	for name, test := range map[string]struct {
		body              any
		contentType, want string
		kind              string
	}{
		"value":         {map[string]any{"b": 1, "a": "<&>"}, "", `{"a":"<&>","b":1}`, "application/json"},
		"string":        {"text", "", `"text"`, "application/json"},
		"raw":           {json.RawMessage(raw), "", raw, "application/json"},
		"raw null":      {json.RawMessage("null"), "", "null", "application/json"},
		"text":          {client.Text("a\nb"), "", "a\nb", "text/plain; charset=utf-8"},
		"bytes":         {[]byte{0, 1, 255}, "", "\x00\x01\xff", "application/octet-stream"},
		"typed bytes":   {[]byte(raw), "application/json; charset=utf-8", raw, "application/json; charset=utf-8"},
		"reader":        {strings.NewReader(raw), "application/cloudevents+json", raw, "application/cloudevents+json"},
		"none":          {nil, "", "", ""},
		"empty message": {json.RawMessage(nil), "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got, kind string
				srv := newServerOf(t, func(r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					got, kind = string(body), r.Header.Get("Content-Type")
				})
				job, err := srv.Client().Register(t.Context(),
					client.Job{URL: "https://shop.example/", Body: test.body, ContentType: test.contentType})
				require.NoError(t, err)
				srv.Advance(0)
				require.Equal(t, test.want, got)
				require.Equal(t, test.kind, kind)
				job, err = srv.Client().Get(t.Context(), job.ID)
				require.NoError(t, err)
				require.Equal(t, test.want, string(job.Body))

				if r, ok := test.body.(*strings.Reader); ok {
					r.Reset(raw)
				}
				got = ""
				for result, err := range srv.Client().RegisterAll(t.Context(), func(yield func(client.Job) bool) {
					yield(client.Job{URL: "https://shop.example/", Body: test.body, ContentType: test.contentType})
				}) {
					require.NoError(t, err)
					require.NoError(t, result.Err)
				}
				srv.Advance(0)
				require.Equal(t, test.want, got, "also in a stream")
			})
		})
	}
}

func TestJob_MarshalsAndBack(t *testing.T) {
	for _, body := range []any{
		nil, client.Text("a"), []byte{0, 255}, json.RawMessage(`{"a":  1}`), json.RawMessage("null"),
	} {
		job := client.Job{
			ID: "a", Topic: "t", URL: "https://shop.example/", Body: body, Delay: 90 * time.Minute,
			RunAt: time.UnixMilli(1234).UTC(), Retries: new(0), Headers: client.Headers{"A": {"1"}, "B": {"2", "3"}},
			Ladder: []time.Duration{time.Millisecond, 48 * time.Hour}, OnDead: client.NoCallback(),
			OnDelivered: &client.Callback{URL: "https://shop.example/", Timeout: time.Second},
		}
		text, err := job.MarshalJSON()
		require.NoError(t, err)
		var back client.Job
		require.NoError(t, back.UnmarshalJSON(text))
		require.Equal(t, job, back)
	}
}

func TestRegister_RefusesBodiesThatCannotBeSent(t *testing.T) {
	c := faked(t, client.Options{}, func(*http.Request) (*http.Response, error) { panic("no request is made") })
	for _, body := range []any{json.RawMessage("{"), make(chan int), endlessText{}, brokenReader{}} {
		_, err := c.Register(t.Context(), client.Job{Body: body})
		require.ErrorContains(t, err, "body: ")
	}
	for _, id := range []string{"", ".", ".."} {
		_, err := c.Get(t.Context(), id)
		require.ErrorContains(t, err, "in a path")
	}
}

// encoding/json would replace such bytes without a word: another job would be registered, under another id.
func TestRegister_RefusesTextsThatAreNotUTF8(t *testing.T) {
	c := faked(t, client.Options{}, func(*http.Request) (*http.Response, error) { panic("no request is made") })
	const bad = "a\xff"
	for want, job := range map[string]client.Job{
		"id: ": {ID: bad}, "url: ": {URL: "https://" + bad}, "content_type: ": {ContentType: bad},
		"body: ":                  {Body: client.Text(bad)},
		`headers: "X-A": `:        {Headers: client.Headers{"X-B": {"\ufffd"}, "X-A": {"\xc3", "\xa9"}}},
		`headers: "a\xff": `:      {Headers: client.Headers{bad: {"1"}}},
		`labels: "order": `:       {Labels: map[string]string{"order": bad}},
		`labels: "a\xff": `:       {Labels: map[string]string{bad: "1"}},
		"on_dead: url: ":          {OnDead: &client.Callback{URL: bad}},
		"on_delivered: include: ": {OnDelivered: &client.Callback{Include: []string{"body", bad}}},
	} {
		_, err := c.Register(t.Context(), job)
		require.ErrorContains(t, err, "client: "+want+"is not UTF-8")
		for result, err := range c.RegisterAll(t.Context(), slices.Values([]client.Job{job})) {
			require.NoError(t, err)
			require.ErrorContains(t, result.Err, "client: job 0: "+want+"is not UTF-8")
		}
	}
	type name string
	type Embedded struct{ Name *name }
	for where, body := range map[string]any{
		"": bad, "is": name(bad), `"name": `: map[string]string{"name": bad},
		`"a": "b": `: map[string]any{"a": map[name]any{"b": []any{1, bad}}},
		`"a\xff": `:  map[string]int{bad: 1}, "Embedded: Name: ": []*struct{ Embedded }{{Embedded{new(name(bad))}}},
	} {
		_, err := c.Register(t.Context(), client.Job{Body: body})
		require.ErrorContains(t, err, "client: body: "+where)
		require.ErrorContains(t, err, "is not UTF-8")
	}
	cycle := map[string]any{}
	cycle["a"] = cycle
	_, err := c.Register(t.Context(), client.Job{Body: cycle})
	require.ErrorContains(t, err, "client: body: ")
	type other struct {
		Bytes  []byte
		Time   time.Time
		Hidden string `json:"-"`
		hidden string
		None   any
		Number big.Int
	}
	_, err = client.Job{Body: &other{Bytes: []byte(bad), Hidden: bad, hidden: bad}}.MarshalJSON()
	require.NoError(t, err)
	_, err = client.Job{ID: "\ufffd", Body: []byte(bad), Labels: map[string]string{"a": "\ufffd"}}.MarshalJSON()
	require.NoError(t, err)
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestNewID_IsOrderedByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := ""
		for range 100 {
			id := client.NewID()
			require.Regexp(t, "^[0-9a-v]{26}$", id)
			require.Greater(t, id, last)
			last = id
			time.Sleep(time.Millisecond)
		}
	})
}

func TestJobs_StopsWithTheLoop(t *testing.T) {
	pages := 0
	c := faked(t, client.Options{}, func(r *http.Request) (*http.Response, error) {
		pages++
		require.Equal(t, []string{"dead", "cancelled"}, r.URL.Query()["state"])
		if pages > 1 {
			require.Equal(t, fmt.Sprint("page", pages), r.URL.Query().Get("cursor"))
		}
		return response(200,
			fmt.Sprintf(`{"items": [{"id": "a"}, {"id": "b"}], "next_cursor": "page%d", "scanned": 2}`, pages+1)), nil
	})
	seen := 0
	list := c.Jobs(t.Context(), client.Query{State: []client.State{client.Dead, client.Cancelled}})
	require.Zero(t, pages, "it is lazy")
	for _, err := range list {
		require.NoError(t, err)
		if seen++; seen == 3 {
			break
		}
	}
	require.Equal(t, 2, pages)
}

func TestJobs_EndsWithAnError(t *testing.T) {
	c := faked(t, client.Options{}, func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Has("cursor") {
			return response(401, problem(401, "token_expired")), nil
		}
		return response(200, `{"items": [{"id": "a"}], "next_cursor": "x"}`), nil
	})
	var ids []string
	var last error
	for job, err := range c.Jobs(t.Context(), client.Query{}) {
		require.NoError(t, last, "an error is the last")
		if last = err; err == nil {
			ids = append(ids, job.ID)
		}
	}
	require.Equal(t, []string{"a"}, ids)
	require.ErrorIs(t, last, client.ErrUnauthorized)
}

func TestJobs_ListsAllPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		for _, err := range srv.Client().RegisterAll(t.Context(), jobs(25)) {
			require.NoError(t, err)
		}
		n := 0
		for job, err := range srv.Client().
			Jobs(t.Context(), client.Query{Topic: "order.close", Label: nil, Limit: 10}) {
			require.NoError(t, err)
			require.Equal(t, client.Scheduled, job.State)
			n++
		}
		require.Equal(t, 25, n)
		for job, err := range srv.Client().Jobs(t.Context(), client.Query{Label: []string{"n:7"}}) {
			require.NoError(t, err)
			require.Equal(t, map[string]string{"n": "7"}, job.Labels)
		}
	})
}

func TestAnswer_PassesOnWhatIsUnknown(t *testing.T) {
	text := `{"id": "a", "state": "frozen", "verdict": {"x": 1}, "ladder": ["1d2h", "1.5s", 3], "timeout": null}`
	c := faked(t, client.Options{}, func(*http.Request) (*http.Response, error) { return response(200, text), nil })
	job, err := c.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, client.State("frozen"), job.State)
	require.False(t, job.State.Ended())
	require.Equal(t, []time.Duration{26 * time.Hour, 1500 * time.Millisecond, 3 * time.Second}, job.Ladder)
	require.Equal(t, text, string(job.Raw))
	again, err := json.Marshal(job)
	require.NoError(t, err)
	require.JSONEq(t, text, string(again))
}

func TestEdit_HoldsTheRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newServer(t).Client()
		job, err := c.Register(t.Context(),
			client.Job{URL: "https://shop.example/", Delay: time.Hour, Timeout: time.Second})
		require.NoError(t, err)
		edited, err := c.Edit(t.Context(), job.ID, client.Change{Delay: new(2 * time.Hour), Null: []string{"timeout"}},
			client.IfRevision(job.Revision))
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(2*time.Hour), edited.NextAttemptAt, time.Second)
		require.Zero(t, edited.Timeout)
		_, err = c.Edit(t.Context(), job.ID, client.Change{Retries: new(0)}, client.IfRevision(job.Revision))
		require.ErrorIs(t, err, client.ErrRevision)
	})
}

func TestJob_Lifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		c := srv.Client()
		job := client.Job{ID: "close-1", URL: "https://shop.example/", Delay: time.Hour, OnDead: client.NoCallback()}
		_, err := c.Register(t.Context(), job)
		require.NoError(t, err)
		_, err = c.Register(t.Context(), job)
		require.NoError(t, err, "a repeat is no error")
		job.Delay = time.Minute
		_, err = c.Register(t.Context(), job)
		require.ErrorIs(t, err, client.ErrConflict)
		p, _ := errors.AsType[*client.Problem](err)
		require.Equal(t, "id_taken", p.Code)

		_, err = c.Run(t.Context(), "close-1")
		require.NoError(t, err)
		ended, err := c.Wait(t.Context(), "close-1")
		require.NoError(t, err)
		require.Equal(t, client.Delivered, ended.State)
		require.Len(t, ended.Attempts, 1)
		require.Equal(t, 200, ended.Attempts[0].Status)
		require.NotZero(t, ended.Attempts[0].StartedAt)

		revived, err := c.Revive(t.Context(), "close-1", client.Revival{Delay: time.Hour})
		require.NoError(t, err)
		require.Equal(t, 1, revived.Generation)
		cancelled, err := c.Cancel(t.Context(), "close-1")
		require.NoError(t, err)
		require.Equal(t, client.Cancelled, cancelled.State)
		_, err = c.Get(t.Context(), "close-2")
		require.ErrorIs(t, err, client.ErrNotFound)

		waited, err := c.RegisterAndWait(t.Context(), client.Job{URL: "https://shop.example/"}, time.Minute)
		require.NoError(t, err)
		require.Equal(t, client.Delivered, waited.State)
	})
}

func TestLaneCounts_AreOfOneLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newServer(t).Client()
		for _, lane := range []string{"a", "b", "b"} {
			_, err := c.Register(t.Context(),
				client.Job{Topic: "t", Lane: lane, URL: "https://shop.example/", Delay: time.Hour})
			require.NoError(t, err)
		}
		counts, err := c.LaneCounts(t.Context(), "t", "b")
		require.NoError(t, err)
		require.Equal(t, client.LaneCounts{Lane: "b", Scheduled: 2, Breaker: "closed"}, *counts)
		counts, err = c.LaneCounts(t.Context(), "unknown", "b")
		require.NoError(t, err)
		require.Equal(t, client.LaneCounts{Lane: "b", Breaker: "closed"}, *counts)
	})
}

func TestTroubledLanes_SayWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newServer(t).Client()
		for _, lane := range []string{"a", "b"} {
			_, err := c.Register(t.Context(),
				client.Job{Topic: "t", Lane: lane, URL: "https://shop.example/", Delay: time.Hour})
			require.NoError(t, err)
		}
		_, err := c.PauseLane(t.Context(), "t", "b", "the shop moves")
		require.NoError(t, err)
		for q, want := range map[client.TroubledQuery]int{
			{Topic: "t"}: 1, {Topic: "t", Lane: "b", Limit: 1}: 1, {Topic: "t", Lane: "a"}: 0, {Topic: "u"}: 0,
		} {
			found, err := c.TroubledLanes(t.Context(), q)
			require.NoError(t, err)
			require.Len(t, found.Items, want, q)
			require.True(t, found.Exact, q)
		}
		found, err := c.TroubledLanes(t.Context(), client.TroubledQuery{})
		require.NoError(t, err)
		require.Len(t, found.Items, 1)
		require.Equal(t, []any{1, 2, true}, []any{found.Total, found.LookedAt, found.Exact})
		l := found.Items[0]
		require.Equal(t, []any{"t", "b", int64(1)}, []any{l.Topic, l.Lane, l.Scheduled})
		require.WithinDuration(t, time.Now().Add(time.Hour), l.OldestDueAt, time.Minute)
		require.Nil(t, l.LastFailure)
		require.Len(t, l.Reasons, 1)
		require.Equal(t, []any{"lane_paused", "the shop moves"}, []any{l.Reasons[0].Code, l.Reasons[0].Note})
		require.WithinDuration(t, time.Now(), l.Reasons[0].Since, time.Minute)
	})
}

func TestWait_ReturnsWhatItSawWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newServer(t).Client()
		job, err := c.Register(t.Context(), client.Job{URL: "https://shop.example/", Delay: time.Hour})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		seen, err := c.Wait(ctx, job.ID)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, client.Scheduled, seen.State)
	})
}

func TestSettings_PutAcceptsWhatGetReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newServer(t).Client()
		ctx := t.Context()
		zero := 0
		_, err := c.PutTopic(ctx, "order.close", client.Policy{
			Ladder: []time.Duration{time.Minute}, Rate: "100/s",
			Breaker: &client.Breaker{Failures: &zero, Open: time.Minute}, Retries: new(0),
			OnDead: &client.Callback{
				URL: "https://shop.example/dead", Headers: client.Headers{"X-Shop": {"a", "b"}},
				Include: []string{"body"},
			}, KeepDead: &client.Retention{For: new(time.Hour), MaxBytes: "1MiB"},
			GiveUpOn: []string{"410"}, Ordered: new(true),
			OnBacklog: &client.Backlog{URL: "https://shop.example/backlog", OlderThan: time.Minute},
		}, client.IfNew())
		require.NoError(t, err)
		topic, err := c.GetTopicSettings(ctx, "order.close")
		require.NoError(t, err)
		again, err := c.PutTopic(ctx, "order.close", topic.Policy, client.IfRevision(topic.Revision))
		require.NoError(t, err)
		require.Equal(t, []time.Duration{time.Minute}, again.Ladder)
		require.Equal(t, client.Headers{"X-Shop": {"a", "b"}}, again.OnDead.Headers)
		require.Equal(t, time.Hour, *again.KeepDead.For)
		patched, err := c.PatchTopic(ctx, "order.close",
			client.Policy{Timeout: 3 * time.Second, Null: []string{"rate", "on_dead"}})
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, patched.Timeout)
		require.Empty(t, patched.Rate)
		require.Nil(t, patched.OnDead)
		effective, err := c.GetTopic(ctx, "order.close")
		require.NoError(t, err)
		_, err = c.PutTopic(ctx, "order.close", effective.Policy)
		require.NoError(t, err, "also with the defaults")

		_, err = c.PutLane(ctx, "order.close", "shop.example:443",
			client.LaneSettings{LaneRate: "5/90s", LaneConcurrency: 2})
		require.NoError(t, err)
		lane, err := c.PauseLane(ctx, "order.close", "shop.example:443", "ask Mia")
		require.NoError(t, err)
		require.True(t, lane.Paused)
		require.Equal(t, "ask Mia", lane.PauseNote)
		lane, err = c.PutLane(ctx, "order.close", "shop.example:443", lane.LaneSettings,
			client.IfRevision(lane.Revision))
		require.NoError(t, err)
		require.Equal(t, 2, lane.LaneConcurrency)
		require.NoError(t, c.DeleteLane(ctx, "order.close", "shop.example:443"))
		_, err = c.GetLane(ctx, "order.close", "shop.example:443")
		require.ErrorIs(t, err, client.ErrNotFound)

		_, err = c.PutSchedule(ctx, "daily", client.ScheduleRequest{
			Cron: "0 8 * * *", Timezone: "Europe/Berlin", Jitter: time.Minute,
			CatchUp: &client.CatchUp{Window: 6 * time.Hour, Runs: "all"},
			Job: &client.ScheduleJob{
				URL:  "https://shop.example/report",
				Body: json.RawMessage(`{"kind":  "daily"}`), OnDead: client.NoCallback(),
			},
		})
		require.NoError(t, err)
		schedule, err := c.GetSchedule(ctx, "daily")
		require.NoError(t, err)
		require.Len(t, schedule.Next, 10)
		schedule, err = c.PutSchedule(ctx, "daily", schedule.ScheduleRequest, client.IfRevision(schedule.Revision))
		require.NoError(t, err)
		require.JSONEq(t, `{"kind":  "daily"}`, string(schedule.Job.Body.(json.RawMessage)))
		require.Equal(t, 6*time.Hour, schedule.CatchUp.Window)
		require.NotNil(t, schedule.Job.OnDead, "none, not the topic's")

		namespace, err := c.PutNamespace(ctx, "shop",
			client.NamespaceRequest{Quota: client.Quota{Pending: 10, Rate: "5/s"}}, client.IfNew())
		require.NoError(t, err)
		namespace, err = c.PutNamespace(ctx, "shop", namespace.NamespaceRequest, client.IfRevision(namespace.Revision))
		require.NoError(t, err)
		require.Equal(t, int64(10), namespace.Quota.Pending)
	})
}

func TestWaitWork_FollowsItToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		c := srv.Client()
		for _, err := range c.RegisterAll(t.Context(), jobs(50)) {
			require.NoError(t, err)
		}
		order := client.WorkOrder{Action: client.ActionCancel, Where: client.Where{Topic: "order.close"}}
		count, err := c.CountWork(t.Context(), order)
		require.NoError(t, err)
		require.Equal(t, int64(50), count.Matched)
		work, err := c.StartWork(t.Context(), order)
		require.NoError(t, err)
		calls := 0
		work, err = c.WaitWork(t.Context(), work.ID, func(*client.Work) { calls++ })
		require.NoError(t, err)
		require.Equal(t, int64(50), work.Done)
		require.Equal(t, "done", work.State)
		require.Positive(t, calls)
	})
}

func TestCall_RepeatsAndReturnsTheAnswerAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c := faked(t, client.Options{}, func(r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			require.Equal(t, "/v1/x?wait=60s {}", r.URL.RequestURI()+" "+string(body))
			if calls++; calls == 1 {
				return nil, io.ErrUnexpectedEOF
			}
			if calls == 4 {
				return response(404, problem(404, "not_found")), nil
			}
			return response(200, "not JSON"), nil
		})
		r := client.Request{Method: http.MethodPost, Path: "/v1/x?wait=60s", Body: []byte("{}"), Wait: time.Minute}
		answer, err := c.Call(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, "not JSON", string(answer))
		calls, r.Once = 0, true
		_, err = c.Call(t.Context(), r)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		calls = 3
		_, err = c.Call(t.Context(), r)
		require.ErrorIs(t, err, client.ErrNotFound)
	})
}
