package jobpages_test

import (
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/consoletest"
)

// withEvents makes lanes subscribe, and sends events.
func withEvents(t *testing.T, site *consoletest.Site) {
	t.Helper()
	for lane, host := range map[string]string{"shop-1": "fine.example", "shop-2": "down.example"} {
		_, err := site.API.PutLane(t.Context(), "merchants", lane, client.LaneSettings{
			URL: "https://" + host + "/", Subscribe: []string{"order.*"},
		})
		require.NoError(t, err)
	}
	for id, name := range map[string]string{"paid-1": "order.paid", "user-1": "user.new"} {
		_, err := site.API.SendEvent(t.Context(), client.NewEvent{Type: name, Job: client.Job{
			ID: id, Topic: "merchants", Body: map[string]int{"order": 4711}, Retries: new(0),
			Labels: map[string]string{"region": "eu"},
		}})
		require.NoError(t, err)
	}
	site.Advance(10 * time.Second)
}

func TestEvents_AreListedAndShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		require.Contains(t, consoletest.Text(site.Get("events").OK()), "There are no events.")
		withEvents(t, site)
		text := consoletest.Text(site.Golden("events", "events"))
		require.Contains(t, text, "paid-1")
		require.Contains(t, text, "user-1")
		require.NotContains(t, consoletest.Text(site.Get("events?type=order.paid").OK()), "user-1")
		require.Contains(t, consoletest.Text(site.Get("events?topic=none").OK()), "No event matches.")
		require.Contains(t, consoletest.Text(site.Get("events?type=a.*").Is(http.StatusUnprocessableEntity)),
			"must be the type of events")
		page := site.Golden("event", "events/paid-1")
		text = consoletest.Text(page)
		require.Contains(t, text, "2 jobs: 1 delivered, 1 dead.")
		require.Contains(t, text, "shop-2")
		require.Contains(t, text, "4711")
		require.Contains(t, consoletest.Text(site.Get("events/user-1").OK()), "No lane subscribed to it")
		site.Get("events/none").Is(http.StatusNotFound)
		sent, err := site.API.GetEvent(t.Context(), "paid-1")
		require.NoError(t, err)
		require.Contains(t, site.Get("jobs/"+url.PathEscape(sent.Lanes[0].JobID)).OK(), "events/paid-1")
	})
}

func TestReplay_IsCountedAndStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newSite(t, false)
		withEvents(t, site)
		require.Contains(t, site.Get("replay").OK(), "10/s")
		page := site.Golden("replay", "replay?topic=merchants&state=dead&rate=10%2Fs")
		require.Contains(t, consoletest.Text(page), "This would make 1 job.")
		require.Contains(t, consoletest.Text(site.Get("replay?ids=paid-1").OK()), "This would make 2 jobs.")
		none := site.Get("replay?topic=merchants&type=order.shipped").OK()
		require.Contains(t, consoletest.Text(none), "This would make 0 jobs.")
		require.NotContains(t, none, "Send them")
		for query, sentence := range map[string]string{
			"topic=merchants&created_after=x": "must be a time",
			"topic=merchants&type=a.*":        "must be the type of events",
			"topic=merchants&rate=x":          "is not a rate", "type=order.paid": "is required, or ids",
		} {
			require.Contains(t, site.Get("replay?"+query).Is(http.StatusUnprocessableEntity), sentence)
		}
		form := []string{
			"topic", "merchants", "state", "dead", "rate", "",
			"created_before", time.Now().UTC().Add(345 * time.Microsecond).Format(time.RFC3339Nano),
		}
		begun := site.Post("replay", form...)
		require.Regexp(t, "/work/", begun.Header().Get("Location"))
		again := site.Post("replay", form...)
		require.Equal(t, begun.Header().Get("Location"), again.Header().Get("Location"), "it was sent twice")
		site.Advance(10 * time.Second)
		n := 0
		for _, err := range site.API.Jobs(t.Context(), client.Query{Topic: "merchants"}) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 3, n)
		site.Post("replay", "topic", "merchants", "type", "a.*").Is(http.StatusUnprocessableEntity)
	})
}
