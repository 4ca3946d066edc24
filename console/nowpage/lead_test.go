package nowpage

import (
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/sampler"
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

// rates returns samples of a minute.
func rates(delivered, again float64) sampler.Samples {
	return sampler.Samples{
		Steps:    12,
		Verdicts: []sampler.Verdict{{Name: "delivered", LastMinute: delivered}, {Name: "again", LastMinute: again}},
	}
}

// after returns samples after a number of steps.
func after(steps int, s sampler.Samples) sampler.Samples {
	s.Steps = steps
	return s
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
	refused := heldBy("crm.example:443", "order", "topic_paused")
	refused.LastFailure = &client.LaneFailure{At: ago(time.Minute), ErrorClass: "refused"}
	other := heldBy("pay.example:443", "retry_after")
	other.Topic = "u"
	many := troubled(failed, refused, heldBy("c:1", "breaker_half_open"), heldBy("d:1", "retry_after"),
		heldBy("e:1", "breaker_open"))
	many.Exact = false
	due := &client.Counts{Registered: 9, Ready: 3, OldestDueAt: ago(30 * time.Second)}
	onTime := &client.Counts{Registered: 9, Ready: 3, OldestDueAt: ago(time.Second)}
	const waits = " The oldest due job has waited for 30s."

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
				counts: &client.Counts{Registered: 9}, samples: rates(1, 0),
				Stores: []client.StoreReadiness{{Name: "main", Ready: true}, {Name: "eu", Detail: "It is full."}},
			}, "bad", "Callbacks flow. Store eu is not ready: It is full.",
		},
		"flows": {state{counts: onTime, samples: rates(1,
			1), held: troubled(heldBy("a:1", "lane_full", "topic_rate"))}, "ok", "Callbacks flow."},
		"flows, late": {
			state{counts: due, samples: rates(1, 1), held: troubled(heldBy("a:1", "lane_rate"))},
			"warn",
			"Callbacks flow. 1 lane holds jobs back: a:1 (at its rate until 12:01:00)." + waits,
		},
		"flows, late, topic paused without jobs": {
			state{counts: due, samples: rates(1, 0), settings: paused("t"), allCounted: true},
			"warn",
			"Callbacks are late: the oldest due job has waited for 30s, since 11:59:30. Topic t is paused.",
		},
		"flows beside a paused lane": {
			state{counts: onTime, samples: rates(1, 0), held: troubled(heldBy("a:1", "lane_paused", "lane_full"),
				heldBy("b:1", "lane_full"))},
			"warn",
			"Callbacks flow. 1 lane holds jobs back: a:1 (lane paused until 12:01:00).",
		},
		"flows beside a cooldown": {
			state{counts: onTime, samples: rates(1, 0), held: troubled(heldBy("a:1", "cooldown"))},
			"warn",
			"Callbacks flow. 1 lane holds jobs back: a:1 (in a cooldown by Ringback until 12:01:00).",
		},
		"all ended": {state{counts: &client.Counts{Registered: 9, Delivered: 9}, samples: rates(0,
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
			state{counts: &client.Counts{Registered: 9, Running: 1}, samples: rates(0, 0)},
			"ok", "No job is late: 1 attempt is running.",
		},
		"due since they were counted": {state{counts: due, age: 25 * time.Second}, "ok", "No job is late."},
		"due now": {state{counts: &client.Counts{
			Registered: 9, Ready: 1,
			OldestDueAt: ago(time.Second),
		}}, "ok", "No job is late."},
		"late": {state{counts: due}, "warn", "Callbacks are late: the oldest due job has waited for " +
			"30s, since 11:59:30."},
		"late and delivers": {state{counts: due, samples: rates(3, 0)}, "warn", "Callbacks are late: the oldest due " +
			"job has waited for 30s, since 11:59:30."},
		"nobody delivers": {
			state{counts: due, samples: rates(0, 0)},
			"bad",
			"Nothing is being delivered: the oldest due job has waited for 30s. Perhaps no process delivers its " +
				"topic, or no client leases its jobs.",
		},
		"nobody delivers, all lanes were looked at": {
			state{
				counts: due, samples: rates(0, 0), held: troubled(), topics: counted("a", due),
				settings: []*client.Topic{{Name: "a"}},
			},
			"bad",
			"Nothing is being delivered: the oldest due job has waited for 30s, and no lane holds it back. Perhaps " +
				"no process delivers topic a.",
		},
		"nobody delivers, some lanes were looked at": {
			state{
				counts: due, samples: rates(0, 0), topics: counted("a", due),
				held:     &client.TroubledLanes{LookedAt: 2000},
				settings: deliveredBy("a", "handler"),
			},
			"bad",
			"Nothing is being delivered: the oldest due job has waited for 30s, and none of the 2,000 lanes that " +
				"were looked at holds it back. " +
				"Perhaps no program with a handler of topic a is running.",
		},
		"nobody leases": {
			state{
				counts: due, samples: rates(0, 0), held: troubled(),
				topics: append(counted("a", onTime), counted("b", due)...), settings: deliveredBy("b", "pull"),
			},
			"warn",
			"Nothing is being delivered: the oldest due job has waited for 30s, and no lane holds it back. Topic b " +
				"is pulled: perhaps no client leases its jobs.",
		},
		"attempts take long": {
			state{
				counts:  &client.Counts{Registered: 9, Ready: 3, Running: 2, OldestDueAt: ago(30 * time.Second)},
				samples: rates(0, 0), held: troubled(),
			},
			"warn",
			"Nothing is being delivered: 2 attempts are running, and the oldest due job has waited for 30s.",
		},
		"ten seconds of failures": {
			state{
				counts:  &client.Counts{Registered: 9, Scheduled: 1, OldestDueAt: noon.Add(time.Minute)},
				samples: after(2, rates(0, 1)),
			},
			"ok",
			"Nothing is due: 1 job waits, the next one at 12:01:00.",
		},
		"ten seconds of nothing": {state{counts: due, samples: after(2, rates(0, 0))}, "warn", "Callbacks are late: " +
			"the oldest due job has waited for 30s, since 11:59:30."},
		"stuck receiver": {
			state{counts: due, samples: rates(0, 1), held: troubled(heldBy("d:1", "retry_after"))},
			"bad", "Nothing is being delivered: d:1 (asked for a pause, left alone until 12:01:00) is in trouble.",
		},
		"stuck receiver, perhaps more": {
			state{counts: due, samples: rates(0, 1), held: &client.TroubledLanes{
				Items: []client.TroubledLane{heldBy("d:1", "retry_after")}, Total: 1,
			}},
			"bad",
			"Nothing is being delivered: d:1 (asked for a pause, left alone until 12:01:00) and perhaps others are " +
				"in trouble.",
		},
		"all fail": {
			state{
				counts:  &client.Counts{Registered: 9, Scheduled: 1, OldestDueAt: noon.Add(time.Minute)},
				samples: rates(0, 1),
			}, "bad", "Nothing is being delivered: all attempts of the last minute failed.",
		},
		"one receiver": {
			state{counts: due, samples: rates(1, 1), held: troubled(failed)}, "warn", "Callbacks flow. 1 receiver " +
				"is in trouble: pay.example:443 (answered 503 at 11:59:00, breaker open until 12:01:00)." + waits,
		},
		"of two topics": {
			state{counts: due, samples: rates(1, 1), held: troubled(failed, other)},
			"warn",
			"Callbacks flow. 1 receiver is in trouble: pay.example:443 (answered 503 at 11:59:00, breaker open until " +
				"12:01:00)." + waits,
		},
		"receivers, not sampled": {state{counts: due, held: troubled(failed)}, "warn", "1 receiver is in trouble: " +
			"pay.example:443 (answered 503 at 11:59:00, breaker open until 12:01:00)." + waits},
		"many receivers": {
			state{counts: due, samples: rates(1, 1), held: many},
			"warn",
			"Callbacks flow. At least 5 receivers are in trouble: pay.example:443 (answered 503 at 11:59:00, breaker " +
				"open until 12:01:00), " +
				"crm.example:443 (the connection was refused at 11:59:00, waits for a failed job until 12:01:00) and " +
				"3 more. Topic t is paused." + waits,
		},
		"stuck receivers": {
			state{counts: due, samples: rates(0, 0), held: troubled(refused, heldBy("d:1", "retry_after"))},
			"bad",
			"Nothing is being delivered: crm.example:443 (the connection was refused at 11:59:00, waits for a failed " +
				"job until 12:01:00) " +
				"and d:1 (asked for a pause, left alone until 12:01:00) are in trouble. Topic t is paused.",
		},
		"stuck lane": {
			state{counts: due, samples: rates(0, 0), held: troubled(heldBy("slow:1", "lane_full", "topic_rate"))},
			"bad", "Nothing is being delivered: slow:1 (at its concurrency until 12:01:00) holds jobs back.",
		},
		"lane, no sample": {
			state{counts: due, held: troubled(heldBy("slow:1", "lane_full"), heldBy("b:1", "new_code"))},
			"warn",
			"2 lanes hold jobs back: slow:1 (at its concurrency until 12:01:00) and b:1 (new code until 12:01:00)." +
				waits,
		},
		"paused": {
			state{counts: due, samples: rates(0, 0), held: troubled(heldBy("a:1", "topic_paused"))},
			"bad",
			"Nothing is being delivered: topic t is paused.",
		},
		"nobody delivers, topic paused without jobs": {
			state{counts: due, samples: rates(0, 0), settings: paused("t"), allCounted: true},
			"bad",
			"Nothing is being delivered: the oldest due job has waited for 30s. Perhaps no process delivers its " +
				"topic, or no client leases its jobs.",
		},
		"paused, jobs not counted": {
			state{counts: due, samples: rates(0, 0), settings: paused("t")},
			"bad",
			"Nothing is being delivered: topic t is paused.",
		},
		"paused, without jobs": {
			state{counts: &client.Counts{Registered: 1}, samples: rates(0, 0), settings: paused("a", "b")},
			"warn",
			"Nothing waits: all jobs have ended. Topics a and b are paused.",
		},
		"restricted, at first":          {state{}, "", "The first numbers are there within 5 s."},
		"restricted, nothing delivered": {state{samples: rates(0, 0)}, "", "Nothing was delivered in the last minute."},
		"restricted, not followed": {
			state{samples: rates(math.NaN(), math.NaN()), held: troubled()},
			"",
			"It is not known whether callbacks flow: the live stream of attempts could not be followed in the last " +
				"minute.",
		},
		"restricted, not followed, a receiver fails": {
			state{samples: rates(math.NaN(), math.NaN()), held: troubled(heldBy("d:1", "retry_after"))},
			"warn",
			"It is not known whether callbacks flow: the live stream of attempts could not be followed in the last " +
				"minute. " +
				"1 receiver is in trouble: d:1 (asked for a pause, left alone until 12:01:00).",
		},
		"rate not known": {
			state{counts: due, samples: rates(math.NaN(), math.NaN()), held: troubled(failed)},
			"warn",
			"1 receiver is in trouble: pay.example:443 (answered 503 at 11:59:00, breaker open until 12:01:00)." +
				waits,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.state.v = &web.Visit{Now: noon, Base: ".", Who: new(client.Principal)}
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
		held *client.TroubledLanes
		want string
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
			require.Equal(t, test.want, (&state{held: test.held}).lanesNote())
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
