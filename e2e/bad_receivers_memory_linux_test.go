package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/badreceiver"
)

// holding are the kinds of receivers that make an attempt wait.
var holding = []badreceiver.Kind{
	badreceiver.NeverAccepts, badreceiver.NeverAnswers, badreceiver.NeverReads,
	badreceiver.DripsHeader, badreceiver.DripsBody, badreceiver.ReadsSlowly,
	badreceiver.FullHeaderStalls, badreceiver.FullBodyStalls, badreceiver.InterimStalls, badreceiver.PromisesMore,
	badreceiver.HangsHandshake, badreceiver.FullChainStalls, badreceiver.BigTicket, badreceiver.RecordStalls,
	badreceiver.HTTP2ShortFields, badreceiver.HTTP2HeaderStalls, badreceiver.HTTP2FullBodyStalls,
	badreceiver.HTTP2NeverAnswers,
}

// bounded are the kinds that would make an attempt wait, and use most memory, without limits on responses.
var bounded = []badreceiver.Kind{badreceiver.ShortLines, badreceiver.LongLine, badreceiver.BigChainStalls}

// All workers busy with bad receivers fit into 256 MiB, and a good receiver is served meanwhile.
func TestBadReceivers_FitIntoMemory(t *testing.T) {
	t.Parallel()
	const (
		topics    = 16
		lanes     = 58 // of each kind that holds: a lane begins with two slots
		most      = 256 << 20
		inFlight  = 1500 // of 2048: lanes that do not answer leave a quarter to others
		held      = 900  // connections and streams that a receiver has done with, but for their end
		inTheWild = 2    // jobs of each kind that ends an attempt itself
	)
	good := newReceiver(t)
	p := launchProgram(t, "env", nil, "GOMEMLIMIT=224MiB", binary, "serve", "--addr=127.0.0.1:0",
		"--store="+newSQLite(t), "--allow-private", "--log=json", "--ca-file="+badreceiver.CAFile(t))
	for n := range topics {
		call[obj](t, p, http.MethodPut, fmt.Sprintf("/v1/topics/bad-%d", n), obj{
			"timeout": "10m", "retries": 0, "breaker": obj{"failures": 0}, "workers": 2048,
		}, http.StatusOK)
	}
	var (
		jobs      []obj
		receivers []*badreceiver.Receiver
	)
	for _, kind := range badreceiver.All {
		r, count := badreceiver.Start(t, kind), inTheWild
		if slices.Contains(holding, kind) || slices.Contains(bounded, kind) {
			receivers, count = append(receivers, r), 2*lanes
		}
		for n := range count {
			jobs = append(jobs, obj{
				"topic": fmt.Sprintf("bad-%d", n/2%topics), "lane": fmt.Sprintf("%s-%d", kind, n/2),
				"url": r.URL, "body": obj{"n": n},
			})
		}
	}
	for len(jobs) > 0 {
		part := jobs[:min(len(jobs), 500)]
		jobs = jobs[len(part):]
		call[batchAnswer](t, p, http.MethodPost, "/v1/batch", obj{"jobs": part}, http.StatusOK)
	}
	var now, waiting int
	eventually(t, func() bool {
		now, _ = strconv.Atoi(metric(t, p, "ringback_in_flight"))
		waiting = 0
		for _, r := range receivers {
			waiting += r.Held()
		}
		return now >= inFlight && waiting >= held
	}, "not all attempts come to hang")
	worst := time.Duration(0)
	for range 20 {
		a := good.arrives(t, register(t, p, obj{"topic": "good", "url": good.URL + "/ok"}).ID, 1)[0]
		worst = max(worst, a.began.Sub(a.due))
	}
	peak := peakMemory(t, p)
	t.Logf("%d attempts in flight, %d held by receivers: %d MiB; a good receiver was served at most %s late", now,
		waiting, peak>>20, worst)
	require.Less(t, peak, int64(most))
}
