package job

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

func TestHeaderSecret_RoundTrips(t *testing.T) {
	for _, s := range []HeaderSecret{
		{Values: []string{}},
		{Origin: "https://a.example:443", Values: []string{"Bearer x"}},
		{Values: []string{"", "a\tb", "ü,\"\\"}},
		{Origin: "http://[::1]:80", Values: []string{""}},
	} {
		require.Equal(t, s, ParseHeaderSecret(s.Text()))
	}
	sealed, ok := Sealed(SealedValues("plain:x"))
	require.True(t, ok)
	require.Equal(t, "plain:x", sealed)
	for _, sent := range [][]string{nil, {}, {""}, {"plain:x"}, {"\x00plain:x", "y"}, {"y", "\x00plain:x"}} {
		_, ok := Sealed(sent)
		require.False(t, ok, "%q", sent)
	}
}

func TestOrigin_Normalizes(t *testing.T) {
	for target, want := range map[string]string{
		"https://a.example/x?y": "https://a.example:443", "HTTPS://A.EXAMPLE": "https://a.example:443",
		"http://a.example:80/": "http://a.example:80", "http://[::1]/": "http://[::1]:80",
		"https://a.example:8443": "https://a.example:8443", "": "", "http://[": "", "/x": "",
	} {
		require.Equal(t, want, Origin(target), target)
	}
}

// Sealed headers are valid in settings, count their plain size, and are rejected in requests.
func TestValidate_AcceptsSealedHeadersOnlyInSettings(t *testing.T) {
	headers := map[string][]string{"Authorization": SealedValues("x1:00000000:" +
		base64.RawStdEncoding.EncodeToString(make([]byte, 100)))}
	require.Empty(t, ValidateTopic(policy.Topic{
		Headers: headers,
		OnDead:  &policy.Callback{URL: "https://a.example/", Headers: headers},
	}))
	require.Empty(t, ValidateLane(policy.Lane{Headers: headers}))
	require.Equal(t, []string{"/headers/Authorization"}, fieldsOf(Validate(New{Spec: Spec{Header: headers}}, now)))

	large := map[string][]string{"A": SealedValues(strings.Repeat("a", MaxHeaders)), "B": {strings.Repeat("b",
		MaxHeaders/5)}}
	require.Empty(t, ValidateLane(policy.Lane{Headers: large}))
	large["C"] = []string{strings.Repeat("c", MaxHeaders/5)}
	require.Equal(t, []string{"/headers"}, fieldsOf(ValidateLane(policy.Lane{Headers: large})))
}
