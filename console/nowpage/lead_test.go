package nowpage

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/recent"
	"github.com/ringback/ringback/console/web"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// text returns the sentence, with the clock times of times.
func (l lead) text() string {
	var b strings.Builder
	for _, p := range l.Parts {
		b.WriteString(p.Text)
		if !p.Time.IsZero() {
			b.WriteString(p.Time.Format("15:04:05"))
		}
	}
	return b.String()
}

// rates returns what became of attempts lately.
func rates(delivered, failed int64) client.HistoryBucket {
	return client.HistoryBucket{At: noon, Delivered: delivered, Failed: failed}
}

// history returns the last hour, with a bucket.
func history(b client.HistoryBucket) *recent.Attempts {
	return recent.LastHour(&client.Buckets{Minutes: []client.HistoryBucket{b}}, noon)
}

// heldBy returns a lane that is held for reasons.
func heldBy(lane string, codes ...string) client.TroubledLane {
	l := client.TroubledLane{Topic: "t", Lane: lane}
	for _, code := range codes {
		l.Reasons = append(l.Reasons, client.Obstacle{Code: code, Until: noon.Add(time.Minute)})
	}
	return l
}

// paused returns the settings of topics that are paused.
func paused(names ...string) (all []*client.Topic) {
	for _, name := range names {
		all = append(all, &client.Topic{Name: name, Paused: true})
	}
	return all
}

// counted returns the counts of a topic.
func counted(name string, c *client.Counts) []client.TopicCounts {
	return []client.TopicCounts{{Topic: name, Counts: *c}}
}

// deliveredBy returns the settings of a topic.
func deliveredBy(name, deliver string) []*client.Topic {
	return []*client.Topic{{Name: name, Policy: client.Policy{Deliver: deliver}}}
}

func troubled(lanes ...client.TroubledLane) *client.TroubledLanes {
	return &client.TroubledLanes{Items: lanes, Total: len(lanes), Exact: true}
}

func TestLead(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	ready := []client.StoreReadiness{{Name: "main", Ready: true}}
	failed := heldBy("pay.example:443", "breaker_open")
	failed.LastFailure = &client.LaneFailure{At: ago(time.Minute), Status: 503}
	failed.Health = &client.ReceiverHealth{State: "failing", Since: ago(9 * time.Minute), FailedPercent: 98}
	failing := heldBy("sms.example:443", "failing")
	failing.Reasons[0].Until = time.Time{}
	failing.LastFailure, failing.Health = failed.LastFailure, failed.Health
	refused := heldBy("crm.example:443", "order", "topic_paused")
	refused.LastFailure = &client.LaneFailure{At: ago(time.Minute), ErrorClass: "refused"}
	other := heldBy("pay.example:443", "retry_after")
	other.Topic = "u"
	many := troubled(failed, refused, heldBy("c:1", "breaker_half_open"), heldBy("d:1", "retry_after"),
		heldBy("e:1", "breaker_open"))
	many.Exact = false
	due := &client.Counts{Registered: 9, Ready: 3, OldestDueAt: ago(30 * time.Second)}
	onTime := &client.Counts{Registered: 9, Ready: 3, OldestDueAt: ago(time.Second)}

	for name, test := range map[string]struct {
		state state
		class string
		text  string
	}{
		"fresh": {state{counts: new(client.Counts)}, "", "No job has been registered yet."},
		"not ready": {
			state{fault: "redis: connection refused", Stores: nil},
			"bad",
			"This process is not ready: redis: connection refused. It is not known whether callbacks flow.",
		},
		"not readable": {state{fault: "the store does not " +
			"answer!", Stores: ready}, "warn", "The store cannot be read now: the store does not answer!"},
		"one store of two": {
			state{
				counts: &client.Counts{Registered: 9}, lately: rates(1, 0),
				Stores: []client.StoreReadiness{{Name: "main", Ready: true}, {Name: "eu", Detail: "It is full."}},
			},
			"bad",
			"Store eu is not ready: It is full. Callbacks are delivered. It is not known whether receivers " +
				"fail: no lane could be looked at.",
		},
		"flows": {
			state{counts: onTime, lately: rates(1,
				1), troubled: troubled(heldBy("a:1", "lane_full", "topic_rate"))},
			"ok",
			"Callbacks flow.",
		},
		"flows, late": {
			state{counts: due, lately: rates(1, 1), troubled: troubled(heldBy("a:1", "lane_rate"))},
			"warn",
			"1 lane holds jobs back: a:1 of topic t (at its rate until 12:01:00). The oldest due job has " +
				"waited for 30s. Some callbacks are delivered.",
		},
		"flows, late, topic paused without jobs": {
			state{counts: due, lately: rates(1, 0), settings: paused("t"), allCounted: true},
			"warn",
			"Topic t is paused. Callbacks are late: the oldest due job has waited for 30s, since 11:59:30.",
		},
		"flows beside a paused lane": {
			state{counts: onTime, lately: rates(1, 0), troubled: troubled(heldBy("a:1", "lane_paused", "lane_full"),
				heldBy("b:1", "lane_full"))},
			"warn",
			"1 lane holds jobs back: a:1 of topic t (lane paused until 12:01:00). Some callbacks are delivered.",
		},
		"flows beside a cooldown": {
			state{counts: onTime, lately: rates(1, 0), troubled: troubled(heldBy("a:1", "cooldown"))},
			"warn",
			"1 lane holds jobs back: a:1 of topic t (in a cooldown by Ringback until 12:01:00). Some " +
				"callbacks are delivered.",
		},
		"all ended": {state{counts: &client.Counts{Registered: 9, Delivered: 9}, lately: rates(0,
			0)}, "ok", "Nothing waits: all jobs have ended."},
		"nothing due": {state{counts: &client.Counts{
			Registered: 9, Scheduled: 1200,
			OldestDueAt: noon.Add(time.Minute),
		}}, "ok", "Nothing is due: 1,200 jobs wait, the next one at 12:01:00."},
		"one of them": {state{counts: &client.Counts{
			Registered: 9, Scheduled: 1,
			OldestDueAt: noon.Add(time.Minute),
		}}, "ok", "Nothing is due: 1 job waits, the next one at 12:01:00."},
		"runs": {
			state{counts: &client.Counts{Registered: 9, Running: 1}, lately: rates(0, 0)},
			"ok", "No job is late: 1 attempt is running.",
		},
		"due since they were counted": {state{counts: due, age: 25 * time.Second}, "ok", "No job is late."},
		"due now": {state{counts: &client.Counts{
			Registered: 9, Ready: 1,
			OldestDueAt: ago(time.Second),
		}}, "ok", "No job is late."},
		"late": {
			state{counts: due},
			"bad",
			"Nothing is being delivered: the oldest due job has waited for 30s. Perhaps no process delivers " +
				"its topic, or no client leases its jobs.",
		},
		"late and delivers": {state{counts: due, lately: rates(3, 0)}, "warn", "Callbacks are late: the oldest due " +
			"job has waited for 30s, since 11:59:30."},
		"nobody delivers": {
			state{counts: due, lately: rates(0, 0)},
			"bad",
			"Nothing is being delivered: the oldest due job has waited for 30s. Perhaps no process delivers its " +
				"topic, or no client leases its jobs.",
		},
		"nobody delivers, all lanes were looked at": {
			state{
				counts: due, lately: rates(0, 0), troubled: troubled(), topics: counted("a", due),
				settings: []*client.Topic{{Name: "a"}},
			},
			"bad",
			"Nothing is being delivered: the oldest due job has waited for 30s, and no lane holds it back. Perhaps " +
				"no process delivers topic a.",
		},
		"nobody delivers, some lanes were looked at": {
			state{
				counts: due, lately: rates(0, 0), topics: counted("a", due),
				troubled: &client.TroubledLanes{LookedAt: 2000},
				settings: deliveredBy("a", "handler"),
			},
			"bad",
			"Nothing is being delivered: the oldest due job has waited for 30s, and none of the 2,000 lanes that " +
				"were looked at holds it back. " +
				"Perhaps no program with a handler of topic a is running.",
		},
		"nobody leases": {
			state{
				counts: due, lately: rates(0, 0), troubled: troubled(),
				topics: append(counted("a", onTime), counted("b", due)...), settings: deliveredBy("b", "pull"),
			},
			"warn",
			"Nothing is being delivered: the oldest due job has waited for 30s, and no lane holds it back. Topic b " +
				"is pulled: perhaps no client leases its jobs.",
		},
		"attempts take long": {
			state{
				counts: &client.Counts{Registered: 9, Ready: 3, Running: 2, OldestDueAt: ago(30 * time.Second)},
				lately: rates(0, 0), troubled: troubled(),
			},
			"warn",
			"Nothing is being delivered: 2 attempts are running, and the oldest due job has waited for 30s.",
		},
		"stuck receiver": {
			state{counts: due, lately: rates(0, 1), troubled: troubled(heldBy("d:1", "retry_after"))},
			"bad",
			"The receiver of 1 lane fails: d:1 of topic t (asked for a pause, left alone until 12:01:00). " +
				"The oldest due job has waited for 30s. Nothing is being delivered.",
		},
		"stuck receiver, perhaps more": {
			state{counts: due, lately: rates(0, 1), troubled: &client.TroubledLanes{
				Items: []client.TroubledLane{heldBy("d:1", "retry_after")}, Total: 1,
			}},
			"bad",
			"The receiver of at least 1 lane fails: d:1 of topic t (asked for a pause, left alone until " +
				"12:01:00). The oldest due job has waited for 30s. Nothing is being delivered.",
		},
		"all fail": {
			state{
				counts: &client.Counts{Registered: 9, Scheduled: 1, OldestDueAt: noon.Add(time.Minute)},
				lately: rates(0, 3),
			}, "bad", "Nothing is being delivered: all attempts of the last minutes failed.",
		},
		"one receiver": {
			state{counts: due, lately: rates(1, 1), troubled: troubled(failed)},
			"warn",
			"The receiver of 1 lane fails: pay.example:443 of topic t (since 11:51:00, 98\u00a0% of its " +
				"latest attempts, newest: answered 503, breaker open until 12:01:00). The oldest due job has " +
				"waited for 30s. Some callbacks are delivered.",
		},
		"fails without a breaker": {
			state{counts: onTime, lately: rates(1, 1), troubled: troubled(failing)},
			"warn",
			"The receiver of 1 lane fails: sms.example:443 of topic t (since 11:51:00, 98\u00a0% of its " +
				"latest attempts, newest: answered 503). Some callbacks are delivered.",
		},
		"died": {
			state{counts: onTime, lately: client.HistoryBucket{At: noon, Delivered: 3, Dead: 39}, troubled: troubled()},
			"warn",
			"39 jobs died in the last hour. Callbacks flow.",
		},
		"one died, late": {
			state{counts: due, lately: client.HistoryBucket{At: noon, Failed: 3, Dead: 1}, troubled: troubled(failed)},
			"bad",
			"The receiver of 1 lane fails: pay.example:443 of topic t (since 11:51:00, 98\u00a0% of its " +
				"latest attempts, newest: answered 503, breaker open until 12:01:00). The oldest due job has " +
				"waited for 30s. 1 job died in the last hour. Nothing is being delivered.",
		},
		"nothing was looked at": {
			state{counts: onTime, lately: rates(3, 0), troubled: new(client.TroubledLanes)},
			"warn",
			"Callbacks are delivered. It is not known whether receivers fail: no lane could be looked at.",
		},
		"of two topics": {
			state{counts: due, lately: rates(1, 1), troubled: troubled(failed, other)},
			"warn",
			"The receivers of 2 lanes fail: pay.example:443 of topic t (since 11:51:00, 98\u00a0% of its " +
				"latest attempts, newest: answered 503, breaker open until 12:01:00) and pay.example:443 of " +
				"topic u (asked for a pause, left alone until 12:01:00). The oldest due job has waited for " +
				"30s. Some callbacks are delivered.",
		},
		"receivers, nothing delivered": {
			state{counts: due, troubled: troubled(failed)},
			"bad",
			"The receiver of 1 lane fails: pay.example:443 of topic t (since 11:51:00, 98\u00a0% of its " +
				"latest attempts, newest: answered 503, breaker open until 12:01:00). The oldest due job has " +
				"waited for 30s. Nothing is being delivered.",
		},
		"many receivers": {
			state{counts: due, lately: rates(1, 1), troubled: many},
			"warn",
			"The receivers of at least 5 lanes fail: pay.example:443 of topic t (since 11:51:00, 98\u00a0% of " +
				"its latest attempts, newest: answered 503, breaker open until 12:01:00), crm.example:443 of " +
				"topic t (newest: the connection was refused, waits for a failed job until 12:01:00) and 3 " +
				"more. Topic t is paused. The oldest due job has waited for 30s. Some callbacks are " +
				"delivered.",
		},
		"stuck receivers": {
			state{counts: due, lately: rates(0, 0), troubled: troubled(refused, heldBy("d:1", "retry_after"))},
			"bad",
			"The receivers of 2 lanes fail: crm.example:443 of topic t (newest: the connection was refused, " +
				"waits for a failed job until 12:01:00) and d:1 of topic t (asked for a pause, left alone until " +
				"12:01:00). Topic t is paused. The oldest due job has waited for 30s. Nothing is being " +
				"delivered.",
		},
		"stuck lane": {
			state{counts: due, lately: rates(0, 0), troubled: troubled(heldBy("slow:1", "lane_full", "topic_rate"))},
			"bad",
			"Nothing is being delivered: slow:1 of topic t (at its concurrency until 12:01:00) holds jobs " +
				"back.",
		},
		"lanes, nothing delivered": {
			state{counts: due, troubled: troubled(heldBy("slow:1", "lane_full"), heldBy("b:1", "new_code"))},
			"bad",
			"Nothing is being delivered: slow:1 of topic t (at its concurrency until 12:01:00) and b:1 of " +
				"topic t (new code until 12:01:00) hold jobs back.",
		},
		"paused": {
			state{counts: due, lately: rates(0, 0), troubled: troubled(heldBy("a:1", "topic_paused"))},
			"bad",
			"Nothing is being delivered: topic t is paused.",
		},
		"nobody delivers, topic paused without jobs": {
			state{counts: due, lately: rates(0, 0), settings: paused("t"), allCounted: true},
			"bad",
			"Nothing is being delivered: the oldest due job has waited for 30s. Perhaps no process delivers its " +
				"topic, or no client leases its jobs.",
		},
		"paused, jobs not counted": {
			state{counts: due, lately: rates(0, 0), settings: paused("t")},
			"bad",
			"Nothing is being delivered: topic t is paused.",
		},
		"paused, without jobs": {
			state{counts: &client.Counts{Registered: 1}, lately: rates(0, 0), settings: paused("a", "b")},
			"warn",
			"Topics a and b are paused.",
		},
		"restricted, not counted": {
			state{troubled: troubled()},
			"",
			"It is not known whether callbacks flow: not all topics of your token can be counted.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.state.v = &web.Visit{Now: noon, Base: ".", Who: new(client.Principal)}
			if test.state.counts != nil || test.state.lately.Delivered > 0 {
				test.state.Hour = history(test.state.lately)
			}
			l := test.state.lead()
			require.Equal(t, test.text, l.text())
			require.Equal(t, test.class, l.Class)
		})
	}
}

func TestCards_CountDeadJobsAsDeliveredOnes(t *testing.T) {
	s := state{v: &web.Visit{Now: noon, Base: "."}, counts: &client.Counts{Registered: 7, Delivered: 4, Dead: 3}}
	cards := s.cards()
	i := slices.IndexFunc(cards, func(c card) bool { return c.Label == "Dead" })
	require.Equal(t, card{Label: "Dead", Value: "3", Note: "in all; see dead letters", To: "./dead"}, cards[i],
		"they may be deleted: nothing may be left to do")
}

func TestLanesNote(t *testing.T) {
	lanes := func(total int, items ...client.TroubledLane) *client.TroubledLanes {
		return &client.TroubledLanes{Items: items, Total: total, Exact: true, LookedAt: 7}
	}
	open, paused := heldBy("a:1", "breaker_open"), heldBy("b:1", "topic_paused")
	some := lanes(1, open)
	some.Exact = false
	for name, test := range map[string]struct {
		troubled *client.TroubledLanes
		want     string
	}{
		"unknown":        {nil, ""},
		"all are listed": {lanes(1, open), ""},
		"one more":       {lanes(3, open, paused), "1 more lane holds jobs back; these are the worst."},
		"more":           {lanes(9, open), "8 more lanes hold jobs back; these are the worst."},
		"one other":      {lanes(2, paused), "1 other lane holds jobs back."},
		"others":         {lanes(3, paused), "2 other lanes hold jobs back."},
		"not all":        {some, "The search ended after 7 lanes, so there may be others."},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, (&state{troubled: test.troubled}).lanesNote())
		})
	}
}

func TestAPIAddress(t *testing.T) {
	for name, test := range map[string]struct{ host, proto, prefix, want string }{
		"direct":     {"localhost:8080", "", "", "http://localhost:8080"},
		"IPv6":       {"[::1]:8080", "", "", "http://[::1]:8080"},
		"proxied":    {"rb.example", "HTTPS", "/a/b/", "https://rb.example/a/b"},
		"two values": {"rb.example", "https,http", "/a b", "https://rb.example"},
		"hostile":    {"a';id'", "javascript", "//evil.example", "http://localhost:8080"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/console/", nil)
			r.Host = test.host
			r.Header.Set("X-Forwarded-Proto", test.proto)
			r.Header.Set("X-Forwarded-Prefix", test.prefix)
			require.Equal(t, test.want, apiAddress(&web.Visit{Request: r}))
		})
	}
}
