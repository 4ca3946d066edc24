package app

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryFaultOfTheOptionsIsNamedAtOnce(t *testing.T) {
	err := Options{
		Addr: "8080", Store: "mysql://x", Shards: -1, MaxBody: -1, Grace: time.Millisecond, Token: "a b", NoAuth: true,
	}.Validate()
	require.Error(t, err)
	faults := strings.Split(err.Error(), "\n")
	var fields []string
	for _, f := range faults {
		field, _, _ := strings.Cut(f, ":")
		fields = append(fields, field)
	}
	require.Equal(t, []string{"addr", "no-auth", "token", "store", "shards", "max-body", "grace"}, fields)
}

func TestTheZeroOptionsAreGood(t *testing.T) {
	require.NoError(t, Options{}.Validate())
}

func TestBeyondLoopbackATokenIsNeededUnlessSaidOtherwise(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "localhost:80", "[::ffff:127.0.0.1]:80"} {
		require.NoError(t, Options{Addr: addr}.Validate(), addr)
	}
	for _, addr := range []string{":80", "0.0.0.0:80", "[::]:80", "10.0.0.1:80", "example.org:80"} {
		require.ErrorContains(t, Options{Addr: addr}.Validate(), "--no-auth", addr)
		require.NoError(t, Options{Addr: addr, Token: "s3cret"}.Validate(), addr)
		require.NoError(t, Options{Addr: addr, NoAuth: true}.Validate(), addr)
	}
}

func TestStoreNames(t *testing.T) {
	for text, want := range map[string]string{
		"sqlite:ringback.db":           "sqlite:ringback.db",
		"sqlite:///var/lib/x.db":       "sqlite:/var/lib/x.db",
		"redis://localhost:6379/2":     "redis://localhost:6379/2",
		"rediss://u:pw@r.example:6380": "rediss://u:xxxxx@r.example:6380",
	} {
		name, err := parseStore(text)
		require.NoError(t, err, text)
		require.Equal(t, want, name.String())
	}
	for _, text := range []string{"", "ringback.db", "sqlite:", "sqlite::memory:", "redis:", "redis://", "mysql://x", "redis://u:pw@%zz/"} {
		_, err := parseStore(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "pw")
	}
}

func TestATokenPrintsAsRedacted(t *testing.T) {
	s := Token("s3cret")
	text, err := json.Marshal(struct{ S Token }{s})
	require.NoError(t, err)
	for _, shown := range []string{
		s.String(), fmt.Sprint(s), fmt.Sprintf("%s %v %+v %#v %q", s, s, s, s, s), string(text), s.LogValue().String(),
		fmt.Sprintf("%+v %#v", Options{Token: s}, Options{Token: s}),
	} {
		require.NotContains(t, shown, "s3cret")
		require.Contains(t, shown, "[redacted]")
	}
	require.Empty(t, Token("").String())
}
