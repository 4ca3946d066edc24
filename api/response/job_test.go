package response

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestBody_ReturnsWhatWasSent(t *testing.T) {
	for name, c := range map[string]struct {
		kind job.BodyKind
		body string
		want string
	}{
		"none": {job.BodyNone, "", `{"body":null,"body_text":null,"body_base64":null}`},
		"JSON": {job.BodyJSON, `{ "b": 1.0, "a": ` +
			`"<" }`, `{"body":{ "b": 1.0, "a": "<" },"body_text":null,"body_base64":null}`},
		"invalid JSON": {job.BodyJSON, `{`, `{"body":null,"body_text":null,"body_base64":"ew=="}`},
		"text":         {job.BodyText, "a\"\n", `{"body":null,"body_text":"a\"\n","body_base64":null}`},
		"empty text":   {job.BodyText, "", `{"body":null,"body_text":"","body_base64":null}`},
		"invalid text": {job.BodyText, "\xff", `{"body":null,"body_text":null,"body_base64":"/w=="}`},
		"bytes":        {job.BodyBase64, "\x00\xff", `{"body":null,"body_text":null,"body_base64":"AP8="}`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, written(t, func(o *Buffer) { o.Body(c.kind, []byte(c.body)) }))
		})
	}
}

func TestJob_HasNullForUnsetFields(t *testing.T) {
	j := job.Job{}
	j.ID, j.Topic, j.Lane, j.State, j.Version, j.CreatedAt = "a", "orders", "a.example:80", job.Running, 1, at
	require.JSONEq(t,
		`{"id":"a","topic":"orders","lane":"a.example:80","url":null,"method":"POST","headers":null,`+
			`"content_type":null,"retries":null,`+
			`"ladder":null,"timeout":null,"expires_at":null,"labels":null,"on_delivered":null,"on_dead":null,`+
			`"kind":null,"origin":null,`+
			`"state":"running","reason":null,"attempts_made":0,"last_status":null,`+
			`"last_error_class":null,"next_attempt_at":null,`+
			`"created_at":"2026-03-01T12:00:00.000Z",`+
			`"ended_at":null,"callback_id":null,"revision":1,"generation":0,"cancel_requested":false}`,
		written(t, func(o *Buffer) { o.Job(&j) }))
}

func TestJob_ShowsItsNextAttemptWhileItWaits(t *testing.T) {
	for state, waits := range map[job.State]bool{
		job.Scheduled: true, job.Ready: true, job.Running: false, job.Delivered: false,
		job.Dead: false, job.Cancelled: false,
	} {
		j := job.Job{}
		j.State, j.DueAt = state, at
		require.Equal(t, waits, strings.Contains(written(t, func(o *Buffer) { o.Job(&j) }),
			`"next_attempt_at":"2026-03-01T12:00:00.000Z"`), state)
	}
}

func TestJob_HasZeroRetries(t *testing.T) {
	j := job.Job{}
	j.Terms = policy.Terms{Retries: new(0), Ladder: policy.Ladder{time.Second}, Timeout: time.Minute}
	require.Contains(t, written(t, func(o *Buffer) { o.Job(&j) }), `"ladder":["1s"],"retries":0,"timeout":"1m"`)
}

func TestHistory_SeparatesAttemptsFromEvents(t *testing.T) {
	j := job.Job{
		Spec:     job.Spec{URL: "https://b.example/", FirstURL: "https://a.example/?x=1", CreatedBy: "shop-api"},
		Progress: job.Progress{CreatedAt: at},
		History: []job.Attempt{
			{
				N: 1, Kind: job.KindAttempt, StartedAt: at, Duration: 1600 * time.Microsecond,
				Status: 500, Verdict: "again", Phases: policy.Phases{
					DNS:     100 * time.Microsecond,
					Connect: time.Millisecond, FirstByte: 500 * time.Microsecond,
				},
				RemoteAddr: "192.0.2.7:443", Process: "web-1/7K2QJ7HNTA",
			},
			{N: 2, Kind: job.KindReleased, StartedAt: at, Error: "the secret is not readable", Verdict: "released"},
			{N: 2, Kind: job.KindLost, StartedAt: at, Duration: 3 * time.Second, Process: "7K2QJ7HNTA"},
			{
				N: 3, Kind: job.KindAttempt, StartedAt: at, Error: "refused", ErrorClass: policy.ClassRefused,
				URL: "https://b.example/",
			},
		},
		Events: []job.Event{{
			At: at.Add(time.Second), Kind: job.EventEdited, Fields: []string{"body", "url"},
			Actor: "jan",
		}, {At: at, Kind: job.EventRun}},
	}
	got := written(t, func(o *Buffer) { o.History(&j) })
	requireExact(t, `{"attempts":[`+
		`{"n":1,"kind":"attempt","started_at":"2026-03-01T12:00:00.000Z","duration_ms":1.6,`+
		`"phases":{"dns_ms":0.1,"connect_ms":1,"tls_ms":null,"first_byte_ms":0.5},`+
		`"url":"https://a.example/?x=1","remote_addr":"192.0.2.7:443","process":"web-1/7K2QJ7HNTA","status":500,`+
		`"verdict":"again",`+
		`"reason":null,"error":null,"error_class":null,"response_headers":null,"response_body":null,`+
		`"response_body_base64":null},`+
		`{"n":2,"kind":"released","started_at":"2026-03-01T12:00:00.000Z","duration_ms":null,"phases":null,`+
		`"url":null,"remote_addr":null,"process":null,"status":null,"verdict":"released",`+
		`"reason":null,"error":"the secret is not readable","error_class":null,"response_headers":null,`+
		`"response_body":null,"response_body_base64":null},`+
		`{"n":2,"kind":"lost","started_at":"2026-03-01T12:00:00.000Z","duration_ms":3000,"phases":null,`+
		`"url":null,"remote_addr":null,"process":"7K2QJ7HNTA","status":null,"verdict":null,`+
		`"reason":null,"error":null,"error_class":null,"response_headers":null,"response_body":null,`+
		`"response_body_base64":null},`+
		`{"n":3,"kind":"attempt","started_at":"2026-03-01T12:00:00.000Z","duration_ms":0,"phases":null,`+
		`"url":"https://b.example/","remote_addr":null,"process":null,"status":null,"verdict":null,`+
		`"reason":null,"error":"refused","error_class":"refused","response_headers":null,"response_body":null,`+
		`"response_body_base64":null}],`+
		`"events":[{"at":"2026-03-01T12:00:00.000Z","kind":"created","fields":null,"actor":"shop-api"},`+
		`{"at":"2026-03-01T12:00:01.000Z","kind":"edited","fields":["body","url"],"actor":"jan"},`+
		`{"at":"2026-03-01T12:00:00.000Z","kind":"run","fields":null,"actor":null}]}`, got)
}

func TestAttempts_ShowResponseBodiesAsTextOrBase64(t *testing.T) {
	full := bytes.Repeat([]byte("x"), job.MaxAttemptBody)
	cut := append(bytes.Clone(full[:len(full)-1]), "é"[0])
	for name, c := range map[string]struct {
		body []byte
		want map[string]any
	}{
		"empty":                   {nil, nil},
		"text":                    {[]byte("no\n"), map[string]any{"response_body": "no\n"}},
		"binary":                  {[]byte{0xff}, map[string]any{"response_body_base64": "/w=="}},
		"NUL":                     {[]byte{'a', 0}, map[string]any{"response_body_base64": "YQA="}},
		"a character that is cut": {cut, map[string]any{"response_body": string(full[:len(full)-1])}},
		"the largest":             {full, map[string]any{"response_body": string(full)}},
	} {
		t.Run(name, func(t *testing.T) {
			var got struct{ Attempts []map[string]any }
			text := written(t, func(o *Buffer) { o.History(&job.Job{History: []job.Attempt{{Body: c.body}}}) })
			require.NoError(t, json.Unmarshal([]byte(text), &got))
			for _, key := range []string{"response_body", "response_body_base64"} {
				require.Contains(t, got.Attempts[0], key)
				require.Equal(t, c.want[key], got.Attempts[0][key], key)
			}
		})
	}
}

func TestDurability_IsNullUnlessReported(t *testing.T) {
	requireExact(t, `{"durability":null}`, written(t, func(o *Buffer) { o.Durability(nil) }))
	requireExact(t, `{"durability":{"replicas":2,"synced":true}}`,
		written(t, func(o *Buffer) { o.Durability(&job.Durability{Replicas: 2, Synced: true}) }))
}
