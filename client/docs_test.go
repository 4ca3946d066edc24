package client_test

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/client/clienttest"
)

// The examples of the docs are lines of functions that the tests run, in their order. A function may have lines between
// them.
func TestDocs_ExamplesAreRun(t *testing.T) {
	for page, sources := range map[string][]string{
		"../docs/client.md": {"docs_test.go"},
		"../docs/outbox.md": {"outbox/example_test.go"},
	} {
		var functions [][]string
		for _, source := range sources {
			text, err := os.ReadFile(source)
			require.NoError(t, err)
			for f := range strings.SplitSeq(string(text), "\n}\n") {
				functions = append(functions, codeLines(f+"\n}"))
			}
		}
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		examples := 0
		for block := range strings.SplitSeq(regexp.MustCompile(`(?m)\n\n(\S)`).
			ReplaceAllString(string(text), "\n\n\x00$1"), "\x00") {
			code := regexp.MustCompile(`(?m)^    .*$`).FindAllString(block, -1)
			lines := codeLines(strings.Join(code, "\n"))
			if !regexp.MustCompile(`:=|^const |^func `).MatchString(strings.Join(lines, "\n")) {
				continue // SQL or output
			}
			examples++
			require.True(t, slices.ContainsFunc(functions, func(f []string) bool { return isSubsequence(lines, f) }),
				"%s: no function that is run has the lines of\n%s", page, strings.Join(lines, "\n"))
		}
		require.GreaterOrEqual(t, examples, 2, page)
	}
}

// codeLines returns the lines of code without comments and spaces around them.
func codeLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(regexp.MustCompile(`(^|\s)//.*`).ReplaceAllString(strings.TrimSpace(line), ""))
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func isSubsequence(lines, of []string) bool {
	for _, line := range of {
		if len(lines) > 0 && lines[0] == line {
			lines = lines[1:]
		}
	}
	return len(lines) == 0
}

// documented runs a function with the client of a server.
func documented(t *testing.T, f func(ctx context.Context, c *client.Client) error) *clienttest.Server {
	t.Helper()
	srv := newServer(t)
	require.NoError(t, f(t.Context(), srv.Client()))
	return srv
}

func TestDocs_Register(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		order := map[string]int{"order": 4711}
		srv := documented(t, func(ctx context.Context, to *client.Client) error {
			c, err := client.New("https://ringback.internal", client.Options{Token: token})
			if err != nil {
				return err
			}
			require.Equal(t, "https://ringback.internal", c.String())
			c = to

			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			job, err := c.Register(ctx, client.Job{
				ID: "close-4711", Topic: "order.close", URL: "https://shop.example/hooks/close",
				Delay: 30 * time.Minute, Body: order,
			})
			require.Equal(t, client.Scheduled, job.State)
			return err
		})
		requireRegistered(t, srv, 1)
	})
}

func TestDocs_RegisterAllAndJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged strings.Builder
		slog := slog.New(slog.NewTextHandler(&logged, nil))
		documented(t, func(ctx context.Context, c *client.Client) error {
			jobs := slices.Values([]client.Job{
				{ID: "a", URL: "ftp://shop.example"},
				{ID: "b", Topic: "order.close", URL: "https://shop.example"},
			})
			for result, err := range c.RegisterAll(ctx, jobs) {
				if err != nil {
					return err
				}
				if result.Err != nil {
					slog.Warn("refused", "job", result.ID, "err", result.Err)
				}
			}
			if _, err := c.PutTopic(ctx, "order.close", client.Policy{Deliver: "pull"}); err != nil {
				return err
			}
			if _, err := c.Register(ctx, client.Job{ID: "c", Topic: "order.close", ExpiresIn: time.Second}); err !=
				nil {
				return err
			}
			time.Sleep(time.Minute)
			cursor := ""
			page, err := c.TopicsPage(ctx, client.PageOptions{Cursor: cursor, Limit: 20})
			if err != nil {
				return err
			}
			cursor = page.NextCursor // empty: it is the last page
			require.Empty(t, cursor)
			for job, err := range c.Jobs(ctx, client.Query{Topic: "order.close", State: []client.State{client.Dead}}) {
				if err != nil {
					return err
				}
				slog.Info("dead", "job", job.ID, "reason", job.Reason)
			}
			return nil
		})
		require.Contains(t, logged.String(), `job=a err="422 invalid_field`)
		require.Contains(t, logged.String(), "job=c reason=expired")
	})
}

func TestDocs_Changes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		documented(t, func(ctx context.Context, c *client.Client) error {
			job, err := c.Register(ctx, client.Job{URL: "https://shop.example", Delay: time.Hour, Timeout: time.Minute})
			if err != nil {
				return err
			}
			if _, err := c.PutTopic(ctx, "order.close", client.Policy{Retries: new(0)}); err != nil {
				return err
			}
			id := job.ID
			{
				job, err := c.Edit(ctx, id, client.Change{Delay: new(2 * time.Hour), Null: []string{"timeout"}},
					client.IfRevision(job.Revision))
				require.NoError(t, err)
				require.Zero(t, job.Timeout)
			}
			topic, err := c.PatchTopic(ctx, "order.close", client.Policy{Timeout: 5 * time.Second})
			if err != nil {
				return err
			}
			_, err = c.PutTopic(ctx, "order.close", topic.Policy, client.IfRevision(topic.Revision))
			return err
		})
	})
}

func TestDocs_Work(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newPulled(t, 3).Client()
		render := func(_ context.Context, body []byte) (int, error) { return len(body), nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.Work(ctx, "pdf", client.WorkOptions{Concurrency: 8},
			func(ctx context.Context, job *client.LeasedJob) error {
				pages, err := render(ctx, job.Body)
				job.Response = pages
				return err
			})
		require.NoError(t, err)
		requireState(t, c, "job-2", client.Delivered)
	})
}

func TestDocs_Stream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged strings.Builder
		slog := slog.New(slog.NewTextHandler(&logged, nil))
		documented(t, func(ctx context.Context, c *client.Client) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			time.AfterFunc(10*time.Second, func() {
				_, err := c.Register(ctx, client.Job{ID: "a", Topic: "order.close", URL: "https://shop.example"})
				require.NoError(t, err)
			})
			watch := func() error {
				for event, err := range c.Stream(ctx, client.StreamOptions{Topic: "order.close"}) {
					if err != nil {
						return err
					}
					if event.Attempt != nil {
						slog.Info("attempt", "job", event.Attempt.ID, "verdict", event.Attempt.Verdict)
					}
				}
				return nil
			}
			require.ErrorIs(t, watch(), context.DeadlineExceeded)
			return nil
		})
		require.Contains(t, logged.String(), "job=a verdict=delivered")
	})
}

// closeLater is a function of a program.
func closeLater(ctx context.Context, c *client.Client, order int) error {
	_, err := c.Register(ctx, client.Job{URL: "https://shop.example/close", Delay: 30 * time.Minute, Body: order})
	return err
}

func TestClose(t *testing.T) {
	closed := 0
	shop := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { closed++ })
	synctest.Test(t, func(t *testing.T) {
		srv := clienttest.New(t, shop)
		err := closeLater(t.Context(), srv.Client(), 4711)
		require.NoError(t, err)
		srv.Advance(30 * time.Minute)
	})
	require.Equal(t, 1, closed)
}
