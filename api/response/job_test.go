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
	"github.com/ringback/ringback/store"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestBody_ReturnsWhatWasSent(t *testing.T) {
	for name, c := range map[string]struct {
		kind job.BodyKind
		body string
		want string
	}{
		"none":         {job.BodyNone, "", `{"body":null,"body_text":null,"body_base64":null}`},
		"JSON":         {job.BodyJSON, `{ "b": 1.0, "a": "<" }`, `{"body":{ "b": 1.0, "a": "<" },"body_text":null,"body_base64":null}`},
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
	requireExact(t,
		`{"id":"a","topic":"orders","lane":"a.example:80","url":null,"method":null,"headers":null,"content_type":null,"retries":null,`+
			`"ladder":null,"timeout":null,"expires_at":null,"labels":null,"on_delivered":null,"on_dead":null,"kind":null,"origin":null,`+
			`"state":"running","reason":null,"attempts_made":0,"last_status":null,"next_attempt_at":null,"created_at":"2026-03-01T12:00:00.000Z",`+
			`"ended_at":null,"callback_id":null,"revision":1,"generation":0,"cancel_requested":false}`,
		written(t, func(o *Buffer) { o.Job(&j) }))
}

func TestJob_ShowsItsNextAttemptWhileItWaits(t *testing.T) {
	for state, waits := range map[job.State]bool{
		job.Scheduled: true, job.Ready: true, job.Running: false, job.Delivered: false, job.Dead: false, job.Cancelled: false,
	} {
		j := job.Job{}
		j.State, j.DueAt = state, at
		require.Equal(t, waits, strings.Contains(written(t, func(o *Buffer) { o.Job(&j) }), `"next_attempt_at":"2026-03-01T12:00:00.000Z"`), state)
	}
}

func TestJob_HasZeroRetries(t *testing.T) {
	j := job.Job{}
	j.Terms = policy.Terms{Retries: new(0), Ladder: policy.Ladder{time.Second}, Timeout: time.Minute}
	require.Contains(t, written(t, func(o *Buffer) { o.Job(&j) }), `"retries":0,"ladder":["1s"],"timeout":"1m"`)
}

func TestAttempts_HaveDurationsOfRequestsOnly(t *testing.T) {
	got := written(t, func(o *Buffer) {
		o.Attempts([]job.Attempt{
			{N: 1, Kind: job.KindAttempt, StartedAt: at, Duration: 1600 * time.Microsecond, Status: 500, Verdict: "again"},
			{N: 1, Kind: job.KindEdited, StartedAt: at},
			{N: 2, Kind: job.KindAttempt, StartedAt: at, Error: "refused", ErrorClass: policy.ClassRefused},
		})
	})
	requireExact(t, `{"attempts":[`+
		`{"n":1,"kind":"attempt","started_at":"2026-03-01T12:00:00.000Z","duration_ms":2,"status":500,"verdict":"again"},`+
		`{"n":1,"kind":"edited","started_at":"2026-03-01T12:00:00.000Z"},`+
		`{"n":2,"kind":"attempt","started_at":"2026-03-01T12:00:00.000Z","duration_ms":0,"error":"refused","error_class":"refused"}]}`, got)
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
			text := written(t, func(o *Buffer) { o.Attempts([]job.Attempt{{Body: c.body}}) })
			require.NoError(t, json.Unmarshal([]byte(text), &got))
			for _, key := range []string{"n", "kind", "started_at"} {
				delete(got.Attempts[0], key)
			}
			if c.want == nil {
				c.want = map[string]any{}
			}
			require.Equal(t, c.want, got.Attempts[0])
		})
	}
}

func TestDurability_IsNullUnlessReported(t *testing.T) {
	requireExact(t, `{"durability":null}`, written(t, func(o *Buffer) { o.Durability(nil) }))
	requireExact(t, `{"durability":{"replicas":2,"synced":true}}`,
		written(t, func(o *Buffer) { o.Durability(&job.Durability{Replicas: 2, Synced: true}) }))
}

func TestJobPage_HasACursorUnlessItIsTheLast(t *testing.T) {
	for cursor, want := range map[string]string{
		"": `{"items":[],"next_cursor":null,"scanned":7}`, "next": `{"items":[],"next_cursor":"next","scanned":7}`,
	} {
		require.Equal(t, want, written(t, func(o *Buffer) { o.JobPage(store.Page{Scanned: 7}, cursor) }))
	}
}
