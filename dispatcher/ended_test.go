package dispatcher

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// Whoever registers a job and reads its callback may be a token that does not read settings.
func TestEnded_DoesNotTellTheReceiverOfTheTopicToTheJobsOwnCallback(t *testing.T) {
	const own, ofTopic = "https://own.example/?key=41", "https://topic.example/?key=42"
	callback := &policy.Callback{
		URL:     "https://mine.example/",
		Include: []string{policy.IncludeQuery, policy.IncludeHeaders},
	}
	topic := policy.Builtin()
	topic.OnDead, topic.OnDelivered = callback, callback
	ownTerms := policy.Terms{OnDead: callback, OnDelivered: callback}
	for name, c := range map[string]struct {
		jobURL   string
		terms    policy.Terms
		answered bool // by the receiver
		shown    bool
	}{
		"of the job, to the topic's URL":          {terms: ownTerms},
		"of the job, answered by the topic's URL": {terms: ownTerms, answered: true},
		"of the job, to its own URL":              {jobURL: own, terms: ownTerms, shown: true},
		"of the topic":                            {shown: true},
	} {
		t.Run(name, func(t *testing.T) {
			ended := &store.ClaimedJob{Job: job.Job{Spec: job.Spec{
				ID: "a", Queue: job.Queue{Topic: "orders", Lane: "topic.example:443"}, URL: c.jobURL, Terms: c.terms,
			}}}
			end := &pool.AttemptEvent{
				Job: ended, URL: ofTopic, Terms: topic.Terms(c.terms), Verdict: policy.Verdict{Kind: policy.Dead},
				Record: job.Attempt{
					N: 1, Kind: job.KindAttempt, URL: ofTopic, Error: "lookup topic.example: no such host",
					ErrorClass: policy.ClassDNS,
				},
			}
			if c.jobURL != "" {
				end.URL, end.Record.URL = c.jobURL, ""
			}
			if c.answered {
				end.Verdict.Kind, end.Record.Error, end.Record.ErrorClass, end.Record.Status = policy.Delivered, "",
					"", 200
				end.Record.RemoteAddr, end.Record.Body = "192.0.2.9:443", []byte("welcome to Topic.example")
				end.Record.Header = map[string][]string{
					"Location":     {"https://192.0.2.9/login"},
					"X-Request-Id": {"4711"},
				}
			}
			stored := end.Record
			n, ok := endedCallback(end, time.Now())
			require.True(t, ok)
			require.Equal(t, stored, end.Record, "what is stored stays")
			text := string(n.Body)
			switch {
			case c.shown:
				require.NotContains(t, text, "redacted")
				require.Contains(t, text, `"lane":"topic.example:443"`)
				require.Contains(t, text, `"error":"lookup topic.example: no such host"`)
			default:
				for _, told := range []string{"topic.example", "Topic.example", "192.0.2.9", "key=42"} {
					require.NotContains(t, text, told)
				}
				require.Contains(t, text, `"url":"[redacted]","method"`)
				require.Contains(t, text, `"url":"[redacted]","remote_addr":null`)
				if c.answered {
					require.Contains(t, text, `"status":200`)
					require.Contains(t, text, `"X-Request-Id":"4711"`)
				} else {
					require.Contains(t, text, `"error":"[redacted]","error_class":"dns"`)
				}
			}

			end.Record = job.Attempt{}
			n, ok = endedCallback(end, time.Now())
			require.True(t, ok)
			require.Equal(t, c.shown, !strings.Contains(string(n.Body), job.Redacted), "without an attempt: %s", n.Body)
		})
	}
}

func TestEnded_TellsTheLaneThatNamesNoReceiver(t *testing.T) {
	callback := &policy.Callback{URL: "https://mine.example/"}
	for lane, shown := range map[string]string{
		"tenant-7": "tenant-7", "order:a": "order:a", "topic.example:443": job.Redacted,
		"[2001:db8::1]:80": job.Redacted,
	} {
		own := policy.Terms{OnDelivered: callback}
		n, ok := endedCallback(&pool.AttemptEvent{
			Job: &store.ClaimedJob{Job: job.Job{Spec: job.Spec{
				ID: "a", Queue: job.Queue{Topic: "pulled", Lane: lane},
				Terms: own,
			}}}, Terms: own,
		}, time.Now())
		require.True(t, ok)
		require.Contains(t, string(n.Body), `"lane":"`+shown+`","url":null`)
	}
}
