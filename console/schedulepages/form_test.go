package schedulepages

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
)

// full is a schedule with every field.
func full() client.ScheduleRequest {
	return client.ScheduleRequest{
		Cron: "0 8 * * MON-FRI", Timezone: "Europe/Berlin", Every: 90 * time.Minute, Offset: time.Second,
		Jitter: 1500 * time.Millisecond, StartsAt: time.Date(2026, 11, 24, 14, 30, 0, 0, time.UTC),
		EndsAt: time.Date(2027, 11, 24, 14, 30, 1, 5e6, time.UTC), Job: &client.ScheduleJob{
			Topic: "report", Lane: "eu", URL: "https://shop.example/", Method: "PUT",
			Headers: client.Headers{"X-A": {"1", "2"}, "Authorization": {"[redacted]"}},
			Body:    json.RawMessage(`{"n": 12345678901234567890}`), ContentType: "application/x+json", Retries: new(0),
			Ladder: []time.Duration{time.Second, time.Hour}, Timeout: time.Second, ExpiresIn: time.Hour,
			Labels: map[string]string{"a": "1"}, OnDelivered: client.NoCallback(),
			OnDead: &client.Callback{URL: "https://a.example/", Retries: new(5)},
		},
		Overlap: "skip", CatchUp: &client.CatchUp{Window: 6 * time.Hour, Runs: "all"}, MaxRuns: 100, PauseAfterDead: 3,
		Note: "ask Mia\nor Otto", ManagedBy: "shop", Paused: new(true),
	}
}

func TestScheduleForm_MakesTheScheduleThatItIsOf(t *testing.T) {
	raw, err := full().MarshalJSON()
	require.NoError(t, err)
	values := scheduleForm.Values(raw)
	browsed := make(url.Values)
	for name, text := range scheduleForm.Texts(values) {
		browsed.Set(name, strings.ReplaceAll(text, "\n", "\r\n"))
	}
	texts := scheduleForm.Typed(browsed, nil)
	for _, name := range scheduleForm.Names() {
		require.NotEmpty(t, texts[name], name)
	}
	doc, changed, errs := scheduleForm.Document(nil, texts)
	require.False(t, errs.Any(), errs)
	var made client.ScheduleRequest
	require.NoError(t, json.Unmarshal(doc, &made))
	require.Equal(t, full(), made)
	require.NotEmpty(t, changed)
	doc, changed, _ = scheduleForm.Document(values, texts)
	require.JSONEq(t, string(raw), string(doc))
	require.Empty(t, changed)
}

func TestTimezones_AreKnown(t *testing.T) {
	for _, name := range timezones {
		_, err := time.LoadLocation(name)
		require.NoError(t, err)
	}
}
