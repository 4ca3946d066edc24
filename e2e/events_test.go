package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEvents_ReachEachSubscribedLaneOnceAcrossKills sends events to a process that is killed at any moment, until each
// was answered. Whatever a kill interrupts, each subscribed lane has one job of each event, and no other lane has one.
func TestEvents_ReachEachSubscribedLaneOnceAcrossKills(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		const batches, size, lanes = 12, 25, 9
		r := newReceiver(t)
		p := start(t, store)
		subscribed := make(map[string]bool)
		for i := range lanes {
			lane := fmt.Sprint("shop-", i)
			settings := obj{"url": r.URL + "/ok", "subscribe": []string{"order.*"}}
			if subscribed[lane] = i%3 != 2; !subscribed[lane] {
				settings["subscribe"] = []string{"user.*"}
			}
			call[obj](t, p, http.MethodPut, "/v1/topics/merchants/lanes/"+lane, settings, http.StatusOK)
		}
		kill := time.After(50 * time.Millisecond)
		for b := range batches {
			var events []obj
			for i := range size {
				events = append(events, obj{
					"id": fmt.Sprintf("e-%d-%d", b, i), "topic": "merchants", "type": "order.paid",
					"body": obj{"order": i},
				})
			}
			for sent := false; !sent; {
				select {
				case <-kill:
					p.kill()
					p = start(t, store)
					kill = time.After(rand.N(300 * time.Millisecond)) // any moment will do
				default:
				}
				status, answer, err := send(p.url, http.MethodPost, "/v1/events/batch", obj{"events": events})
				sent = err == nil && status == http.StatusOK && !bytes.Contains(answer, []byte(`"status":503`))
			}
		}
		p.kill()
		p = start(t, store)
		const events, jobs = batches * size, batches * size * (lanes - lanes/3)
		eventually(t, func() bool {
			c := call[struct{ Totals counts }](t, p, http.MethodGet, "/v1/stats", nil, http.StatusOK).Totals
			return c.Delivered == jobs
		}, "every job must be delivered")
		require.EqualValues(t, jobs, ended(t, p).Registered, "one job for each lane")
		ofEvent := make(map[string]map[string]bool) // ids of jobs
		r.mu.Lock()
		for _, all := range r.byID {
			for _, a := range all {
				require.Equal(t, "order.paid", a.header.Get("Ringback-Event"))
				event := a.header.Get("Ringback-Event-Id")
				if ofEvent[event] == nil {
					ofEvent[event] = make(map[string]bool)
				}
				ofEvent[event][a.id] = true
			}
		}
		r.mu.Unlock()
		require.Len(t, ofEvent, events)
		for event, ids := range ofEvent {
			require.Len(t, ids, lanes-lanes/3, event)
		}
		one := call[struct {
			Counts struct{ Delivered int }
			Lanes  []struct{ Lane string }
		}](t, p, http.MethodGet, "/v1/events/e-0-0", nil, http.StatusOK)
		require.Equal(t, lanes-lanes/3, one.Counts.Delivered)
		for _, lane := range one.Lanes {
			require.True(t, subscribed[lane.Lane], lane.Lane)
		}

		call[obj](t, p, http.MethodPut, "/v1/topics/merchants/lanes/late",
			obj{"url": r.URL + "/ok", "subscribe": []string{"order.*"}}, http.StatusOK)
		replay := call[struct{ ID string }](t, p, http.MethodPost, "/v1/work", obj{
			"action": "replay", "where": obj{"topic": "merchants", "state": "missed"},
		}, http.StatusAccepted)
		for range 4 {
			time.Sleep(rand.N(60 * time.Millisecond)) // any moment will do
			p.kill()
			p = start(t, store)
		}
		eventually(t, func() bool {
			c := call[struct{ Totals counts }](t, p, http.MethodGet, "/v1/stats", nil, http.StatusOK).Totals
			return c.Delivered == jobs+events
		}, "every job of the replay must be delivered")
		require.EqualValues(t, jobs+events, ended(t, p).Registered, "one job for each event")
		work := call[struct {
			State string
			Done  int
		}](t, p, http.MethodGet, "/v1/work/"+replay.ID, nil, http.StatusOK)
		require.Equal(t, "done", work.State)
		require.Equal(t, events, work.Done)
	})
}
