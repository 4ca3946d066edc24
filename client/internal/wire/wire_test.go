package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job/units"
)

func TestDuration_IsThatOfTheServer(t *testing.T) {
	for _, d := range []time.Duration{
		0, time.Millisecond, 999 * time.Millisecond, time.Second, 1500 * time.Millisecond,
		90 * time.Second, time.Minute, time.Hour, time.Hour + time.Second, 100 * time.Minute, 24 * time.Hour,
		50 * time.Hour, 30 * 24 * time.Hour, 3653 * 24 * time.Hour, 49*time.Hour + 3*time.Millisecond,
	} {
		read, err := units.ParseDuration(FormatDuration(d))
		require.NoError(t, err, d)
		require.Equal(t, d, read)
		read, err = parseDuration(units.FormatDuration(d))
		require.NoError(t, err, d)
		require.Equal(t, d, read, units.FormatDuration(d))
	}
	require.Equal(t, "2ms", FormatDuration(time.Millisecond+1), "never shorter")
	for _, text := range []string{"", "x", "1", "d", "1dd", "1d2", "99999999999d", "1d1x", "-", "1e400"} {
		if read, err := parseDuration(text); text != "1" {
			require.Error(t, err, "%q is %s", text, read)
		}
	}
}

func TestDecode_RefusesOtherTypesAndNamesTheMember(t *testing.T) {
	var v struct {
		Items []struct {
			Wait time.Duration `json:"wait"`
			At   time.Time     `json:"at"`
			N    *int          `json:"n"`
		} `json:"items"`
	}
	for text, want := range map[string]string{
		`{"items": 5}`:               "items: ",
		`{"items": [5]}`:             "items: ",
		`{"items": [{"wait": "x"}]}`: "wait: ",
		`{"items": [{"wait": {}}]}`:  "wait: ",
		`{"items": [{"at": "now"}]}`: "at: ",
		`{"items": [{"n": "1"}]}`:    "n: ",
		`{"items": [`:                "",
		``:                           "",
		`[]`:                         "",
	} {
		require.ErrorContains(t, Decode([]byte(text), &v), want, text)
	}
	require.NoError(t, Decode([]byte(`{"items": [{"wait": 1.5, "n": null, "more": {"a": 1}}, {"wait": null}]}`), &v))
	require.Equal(t, 1500*time.Millisecond, v.Items[0].Wait)
	require.NoError(t, Decode([]byte(`null`), &v))
	require.Nil(t, v.Items)
}

func TestEncode_RoundsTimesUp(t *testing.T) {
	at := time.Date(2030, 1, 31, 8, 0, 0, 1, time.FixedZone("", 3600))
	text, err := Encode(struct {
		At   time.Time `json:"at"`
		None time.Time `json:"none"`
	}{At: at})
	require.NoError(t, err)
	require.JSONEq(t, `{"at":"2030-01-31T07:00:00.001Z","none":null}`, string(text))
}

func TestEncode_RefusesTextsThatItWouldChange(t *testing.T) {
	type report struct {
		Lease string `json:"lease"`
		Error string `json:"error,omitzero" wire:"lossy"`
	}
	text, err := Encode(report{Lease: "a", Error: "b\xff"})
	require.NoError(t, err)
	require.JSONEq(t, `{"lease": "a", "error": "b\ufffd"}`, string(text))
	_, err = Encode([]report{{Lease: "a\xff"}})
	require.ErrorContains(t, err, "lease: is not UTF-8")
	require.Equal(t, "lease=a%FF", Values(report{Lease: "a\xff"}).Encode())
}

func TestPath_EscapesNames(t *testing.T) {
	path, err := Path("/v1/topics/", "a/b?c", "/lanes/", "[::1]:80", "/pause")
	require.NoError(t, err)
	require.Equal(t, "/v1/topics/a%2Fb%3Fc/lanes/%5B::1%5D:80/pause", path)
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"body": null, "content_type": "a", "d": "1d2h", "l": ["1s", 5], "c": "x", "t": "2030-01-31T08:00:00Z"}`)
	f.Add(`{"body_base64": "AA==", "c": {"url": "x"}, "t": null}`)
	f.Fuzz(func(t *testing.T, text string) {
		type inner struct {
			URL string `json:"url,omitzero" wire:"key"`
		}
		var v struct {
			Raw  json.RawMessage `json:"-" wire:"raw"`
			Body []byte          `json:"body" wire:"payload"`
			D    time.Duration   `json:"d"`
			L    []time.Duration `json:"l"`
			C    *inner          `json:"c"`
			T    time.Time       `json:"t"`
		}
		if Decode([]byte(text), &v) == nil && strings.TrimSpace(text) != "null" {
			_, err := Encode(v.Raw)
			require.NoError(t, err)
		}
	})
}
