package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExplain_TellsWhatHappenedAndWhatComes(t *testing.T) {
	now := time.Date(2030, 1, 31, 8, 0, 20, 0, time.UTC)
	for name, c := range map[string]struct{ job, want string }{
		"retries": {
			`{"id":"j","topic":"t","method":"POST","state":"scheduled","attempts_made":2,` +
				`"next_attempt_at":"2030-01-31T08:00:30Z","retries_left":1,
			"effective":{"url":"http://x/","ladder":["15s","3m"],"retries":3,"max_age":"1d"},` +
				`"waiting_for":{"kind":"breaker","until":"2030-01-31T08:01:20Z","facts":"The breaker of lane l ` +
				`is open.","remedy":{"action":"resume","topic":"t","lane":"l","id":null}},
			"events":[{"at":"2030-01-31T08:00:00Z","kind":"created","actor":"shop-api"},{"at":"2030-01-31T08:00:04Z",` +
				`"kind":"edited","fields":["url"],"actor":null}],
			"attempts":[{"n":1,"kind":"attempt","started_at":"2030-01-31T08:00:01Z","duration_ms":12.3,"status":503,` +
				`"verdict":"again","response_body":"busy\n\u001b now"},
			{"n":2,"kind":"lost","started_at":"2030-01-31T08:00:02Z"},{"n":2,"kind":"attempt",` +
				`"started_at":"2030-01-31T08:00:03Z","duration_ms":10000,"verdict":"again",` +
				`"error_class":"timeout_headers","error":"no header"}]}`,
			`j of topic t is scheduled after 2 attempts.

  2030-01-31 08:00:00.000Z  registered by shop-api
  2030-01-31 08:00:01.000Z  attempt 1: status 503 after 12ms, "busy \x1b now" → again
  2030-01-31 08:00:02.000Z  attempt 2: lost, its process reported no result; the request may have been made
  2030-01-31 08:00:03.000Z  attempt 2: no answer after 10s, timeout_headers: no header → again
  2030-01-31 08:00:04.000Z  edited (url)

Now: it waits, until 2030-01-31 08:01:20.000Z (in 1m).
     The breaker of lane l is open.
     ringback lane resume t l
Next: attempt 3 (POST http://x/) at 2030-01-31 08:01:20.000Z (in 1m), not before.
Then: if it fails, the next one follows after 3m or a little longer; 1 more retry until the job is dead (exhausted).
It is also dead when it has been due for 1d (max_age).`,
		},
		"dead before its next attempt": {
			`{"id":"j","topic":"t","state":"scheduled","retries_left":3,"next_attempt_at":"2030-01-31T08:10:00Z",` +
				`"created_at":"2030-01-31T08:00:00Z",
			"waiting_for":{"kind":"end","until":"2030-01-31T08:10:00Z","facts":"Will be dead ` +
				`(max_age).","remedy":{"action":"set","topic":"t"}},"effective":{"url":"http://x/","retries":3}}`,
			`j of topic t is scheduled, without an attempt.

  2030-01-31 08:00:00.000Z  registered

Now: it waits, until 2030-01-31 08:10:00.000Z (in 9m40s).
     Will be dead (max_age).
     ringback topic set t`,
		},
		"running": {
			`{"id":"j","topic":"t","method":"POST","state":"running","retries_left":0,"cancel_requested":true,` +
				`"expires_at":"2030-02-01T00:00:00Z","created_at":"2030-01-31T08:00:00Z",` +
				`"effective":{"url":"http://x/","retries":0}}`,
			`j of topic t is running, and cancelled unless this attempt delivers it, without an attempt.

  2030-01-31 08:00:00.000Z  registered

Now: an attempt is being made (POST http://x/).
Then: it is the last one. If it fails, the job is dead (exhausted).
It expires at 2030-02-01 00:00:00.000Z.`,
		},
		"dead": {
			`{"id":"j","topic":"t","state":"dead","reason":"expired","created_at":"2030-01-31T08:00:00Z",` +
				`"ended_at":"2030-01-31T08:00:10Z","callback_id":"rb:c"}`,
			`j of topic t is dead (expired), without an attempt.

  2030-01-31 08:00:00.000Z  registered
  2030-01-31 08:00:10.000Z  dead

It is dead because its expiry passed, or would have before the next attempt (expired).
Nothing happens any more. ringback job revive j sends it again.
Its end is reported by the job rb:c: ringback explain rb:c`,
		},
		"unknown words": {
			`{"id":"j","topic":"t","state":"held","waiting_for":{"kind":"new_kind",` +
				`"facts":"Because.","remedy":{"action":"wave","id":"j"}},` +
				`"created_at":"2030-01-31T08:00:00Z"}`,
			`j of topic t is held, without an attempt.

  2030-01-31 08:00:00.000Z  registered

Now: it waits.
     Because.
Next: attempt 1, as soon as nothing keeps it.`,
		},
	} {
		var j job
		require.NoError(t, json.Unmarshal([]byte(c.job), &j), name)
		require.Equal(t, c.want, j.Text(now), name)
	}
}
