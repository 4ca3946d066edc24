package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
)

func TestRegisterAll_GivesResultsOfAnyNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1234
		srv := newServer(t)
		seen := make(map[int]bool)
		for result, err := range srv.Client().RegisterAll(t.Context(), jobs(n)) {
			require.NoError(t, err)
			require.NoError(t, result.Err)
			require.True(t, result.Created)
			require.False(t, seen[result.Index])
			seen[result.Index] = true
		}
		require.Len(t, seen, n)
		requireRegistered(t, srv, n)
	})
}

func TestRegisterAll_HoldsAFewJobsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drawn, results := 0, 0
		most := 0
		sequence := func(yield func(client.Job) bool) {
			for range 20 {
				drawn++
				most = max(most, drawn-results)
				if !yield(client.Job{
					URL: "https://shop.example/", Delay: time.Hour, Body: client.Text(strings.Repeat("a", 250<<10)),
				}) {
					return
				}
			}
		}
		for result, err := range newServer(t).Client().RegisterAll(t.Context(), sequence) {
			require.NoError(t, err)
			require.NoError(t, result.Err)
			results++
		}
		require.Equal(t, 20, results)
		require.LessOrEqual(t, most, 17, "4 MiB")
	})
}

func TestRegisterAll_RefusedJobsDoNotConcernOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		sequence := func(yield func(client.Job) bool) {
			for _, job := range []client.Job{
				{ID: "a", URL: "https://shop.example/", Delay: time.Hour},
				{ID: "b", URL: "ftp://shop.example/"},
				{ID: "c", Body: make(chan int)},
				{ID: "a", URL: "https://shop.example/", Delay: time.Minute},
				{ID: "a", URL: "https://shop.example/", Delay: time.Hour},
			} {
				if !yield(job) {
					return
				}
			}
		}
		got := make(map[int]client.Result)
		for result, err := range srv.Client().RegisterAll(t.Context(), sequence) {
			require.NoError(t, err)
			got[result.Index] = result
		}
		require.Len(t, got, 5)
		require.NoError(t, got[0].Err)
		require.ErrorIs(t, got[1].Err, client.ErrInvalid)
		require.ErrorContains(t, got[2].Err, "job 2: body")
		require.ErrorIs(t, got[3].Err, client.ErrConflict)
		require.NoError(t, got[4].Err)
		require.False(t, got[4].Created)
		requireRegistered(t, srv, 1)
	})
}

func TestRegisterAll_StopsWithTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drawn := 0
		sequence := func(yield func(client.Job) bool) {
			for job := range jobs(5000) {
				drawn++
				if !yield(job) {
					return
				}
			}
		}
		for _, err := range newServer(t).Client().RegisterAll(t.Context(), sequence) {
			require.NoError(t, err)
			break
		}
		require.LessOrEqual(t, drawn, 1000)
	})
}

func TestRegisterAll_SendsAJobBeforeTheNextIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		sequence := func(yield func(client.Job) bool) {
			for job := range jobs(3) {
				if !yield(job) {
					return
				}
				time.Sleep(2 * time.Minute) // longer than a server waits for a line
			}
		}
		var at []time.Duration
		began := time.Now()
		for _, err := range srv.Client().RegisterAll(t.Context(), sequence) {
			require.NoError(t, err)
			at = append(at, time.Since(began).Round(time.Minute))
		}
		require.Len(t, at, 3)
		requireRegistered(t, srv, 3)
		var created []time.Duration
		for job, err := range srv.Client().Jobs(t.Context(), client.Query{}) {
			require.NoError(t, err)
			created = append(created, job.CreatedAt.Sub(began).Round(time.Minute))
		}
		require.ElementsMatch(t, []time.Duration{0, 2 * time.Minute, 4 * time.Minute}, created)
	})
}

func TestRegisterAll_EndsWithItsContextOrARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := faked(t, client.Options{},
			func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, lastError(t, broken, ctx), context.DeadlineExceeded)
		calls := 0
		refusing := faked(t, client.Options{}, func(*http.Request) (*http.Response, error) {
			calls++
			return response(403, problem(403, "forbidden")), nil
		})
		require.ErrorIs(t, lastError(t, refusing, t.Context()), client.ErrForbidden)
		require.Equal(t, 1, calls)
	})
}

//nolint:revive // the test comes first
func lastError(t *testing.T, c *client.Client, ctx context.Context) (last error) {
	t.Helper()
	for _, err := range c.RegisterAll(ctx, jobs(3)) {
		require.NoError(t, last)
		last = err
	}
	return last
}

// TestRegisterAll_SendsAgainWhatTheServerCouldNotStore: results with 429 and 503, an end with a reason, and a silent
// server.
func TestRegisterAll_SendsAgainWhatTheServerCouldNotStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		c := faked(t, client.Options{Timeout: 10 * time.Second}, func(r *http.Request) (*http.Response, error) {
			at = append(at, time.Now())
			sent, first := 0, ""
			for lines := bufio.NewScanner(r.Body); lines.Scan(); sent++ {
				if sent == 0 {
					first = lines.Text()
				}
			}
			ok := `{"index": %d, "id": "x", "status": 201, "durability": null, "error": null}` + "\n"
			failed := `{"index": %d, "id": "x", "status": %[2]d, "durability": null, "error": {"status": %[2]d, ` +
				`"code": "quota", "retry_after_ms": 60000}}` + "\n"
			switch len(at) {
			case 1:
				require.Equal(t, 4, sent)
				return response(200, fmt.Sprintf(ok, 0)+fmt.Sprintf(failed, 1, 429)+fmt.Sprintf(failed, 2, 503)+
					fmt.Sprintf(ok, 3)), nil
			case 2:
				require.Equal(t, 2, sent)
				require.Contains(t, first, `"n":"1"`)
				return response(200, fmt.Sprintf(ok, 0)+`{"index": null, "id": null, "status": 503, "error": `+
					`{"status": 503, "code": "shutting_down"}}`+"\n"), nil
			case 3:
				require.Equal(t, 1, sent)
				res := response(200, "")
				res.Body = io.NopCloser(silence{r.Context()})
				return res, nil
			default:
				return response(200, fmt.Sprintf(ok, 0)+fmt.Sprintf(ok, 0)), nil
			}
		})
		var got []int
		for result, err := range c.RegisterAll(t.Context(), jobs(4)) {
			require.NoError(t, err)
			require.NoError(t, result.Err)
			require.Equal(t, result.Index == 2, result.Repeated)
			got = append(got, result.Index)
		}
		require.Equal(t, []int{0, 3, 1, 2}, got)
		require.Len(t, at, 4)
		require.GreaterOrEqual(t, at[1].Sub(at[0]), time.Minute)
		require.GreaterOrEqual(t, at[3].Sub(at[2]), 10*time.Second)
	})
}

// A line that is registered before, and that was not sent after a try that may have registered it, is another's.
func TestRegisterAll_TellsLinesThatAnEarlierTryMayHaveRegistered(t *testing.T) {
	problem := func(status int, code string) string { return fmt.Sprintf(`{"status": %d, "code": %q}`, status, code) }
	line := func(index string, status int, code string) string {
		return fmt.Sprintf(`{"index": %s, "id": "x", "status": %d, "error": %s}`, index, status,
			problem(status, code)) + "\n"
	}
	for name, c := range map[string]struct {
		first    *http.Response // nil: no connection is made
		repeated bool
	}{
		"refused connection":   {nil, false},
		"too many requests":    {response(429, problem(429, "quota")), false},
		"overload":             {response(503, problem(503, "overloaded")), false},
		"proxy":                {response(502, ""), true},
		"line over a quota":    {response(200, line("0", 429, "quota")), false},
		"line not stored":      {response(200, line("0", 503, "unavailable")), true},
		"end by the server":    {response(200, line("null", 503, "shutting_down")), false},
		"end after a pause":    {response(200, line("null", 408, "request_timeout")), false},
		"request cut off":      {response(200, line("null", 400, "invalid_request")), true},
		"end without a reason": {response(200, ""), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				cl := faked(t, client.Options{}, func(r *http.Request) (*http.Response, error) {
					if tries++; tries > 1 {
						_, _ = io.Copy(io.Discard, r.Body)
						return response(200, `{"index": 0, "id": "x", "status": 200, "error": null}`+"\n"), nil
					}
					if c.first == nil {
						return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
					}
					_, _ = io.Copy(io.Discard, r.Body)
					return c.first, nil
				})
				for result, err := range cl.RegisterAll(t.Context(), jobs(1)) {
					require.NoError(t, err)
					require.False(t, result.Created)
					require.Equal(t, c.repeated, result.Repeated)
				}
				require.Equal(t, 2, tries)
			})
		})
	}
}

// silence is read until its context ends.
type silence struct{ ctx context.Context }

func (s silence) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, errors.New("the connection was closed")
}

// Servers end a stream whose next line does not come.
func TestRegisterAll_GoesOnAfterPausesOfTheSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		c := newClient(t, srv, client.Options{MaxRetries: -1}, srv.HTTP.Transport.RoundTrip)
		paused := func(yield func(client.Job) bool) {
			for j := range jobs(5) {
				time.Sleep(10 * time.Minute)
				if !yield(j) {
					return
				}
			}
		}
		n := 0
		for result, err := range c.RegisterAll(t.Context(), paused) {
			require.NoError(t, err)
			require.True(t, result.Created)
			n++
		}
		require.Equal(t, 5, n)
	})
}

func TestRegisterLines_RegistersJSONOnceOverCutConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		tries := 0
		c := proxied(t, srv, func(c net.Conn) net.Conn {
			tries++
			return &cutConn{c, -1, 61 * (tries - 1)}
		})
		lines := []string{
			`{"id": "a", "url": "https://shop.example/", "delay": "1h"}`,
			`{"id": "b", "url": "https://shop.example/", "dellay": "1h"}`,
			`{"url": "https://shop.example/"}`, `[1]`, "{\"id\":\n\"e\"}",
			`{"id": "f", "url": "https://shop.example/", "delay": "1h"}`,
		}
		errs := make(map[int]string)
		for result, err := range c.RegisterLines(t.Context(), func(yield func([]byte) bool) {
			for _, line := range lines {
				if !yield([]byte(line)) {
					return
				}
			}
		}) {
			require.NoError(t, err)
			require.NotContains(t, errs, result.Index)
			errs[result.Index] = fmt.Sprint(result.ID, " ", result.Err)
		}
		require.Greater(t, tries, 3)
		require.Equal(t, "a <nil>", errs[0])
		require.Contains(t, errs[1], "b 422")
		require.Contains(t, errs[2], "id: is required")
		require.Contains(t, errs[3], "is not a JSON object")
		require.Contains(t, errs[4], "must be on one line")
		require.Equal(t, "f <nil>", errs[5])
		requireRegistered(t, srv, 2)
	})
}
