package dispatcher_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

func TestRun_WarnsOnceOfAFailingReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var status atomic.Int64
		var log testkit.Log
		status.Store(500)
		s := &scene{start(t, dispatcher.Options{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Deliverer: &receiver{answer: func(context.Context, job.Request) policy.Result {
				return policy.Result{Status: int(status.Load())}
			}},
		}), t}
		lines := func(message string) (found []string) {
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, `msg="`+message) {
					found = append(found, line)
				}
			}
			return found
		}
		for i := range 5 {
			s.add("orders", "a", "/", retries(10*time.Minute), func(n *job.New) { n.ID = fmt.Sprint("j", i) })
			time.Sleep(time.Second)
		}
		require.Len(t, lines("receiver fails"), 1)
		for _, part := range []string{
			"level=WARN", "topic=orders", "lane=a", "failed=3", "attempts=3", "failed_percent=100", "job=j2",
			"status=500", "waiting=3", "since=",
		} {
			require.Contains(t, lines("receiver fails")[0], part)
		}
		require.Empty(t, lines("receiver recovered"))
		status.Store(200)
		time.Sleep(11 * time.Minute)
		require.Len(t, lines("receiver recovered"), 1)
		require.Contains(t, lines("receiver recovered")[0], "level=INFO")
		require.Len(t, lines("receiver fails"), 1)

		status.Store(503)
		s.put("mails", policy.Topic{Breaker: policy.Breaker{Failures: new(1), Open: time.Minute}})
		s.add("mails", "b", "/", retries(time.Hour))
		dead := s.add("orders", "b", "/", func(n *job.New) { n.Retries = new(0) })
		time.Sleep(10 * time.Minute)
		require.Len(t, lines("breaker opened"), 1, "its probes log nothing")
		require.Contains(t, lines("breaker opened")[0], "level=WARN")
		require.Len(t, lines("job is dead"), 1)
		require.Contains(t, lines("job is dead")[0], "level=WARN")
		require.Contains(t, lines("job is dead")[0], "job="+dead.ID)
	})
}
