package policy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

const secret = "whsec_topsecret"

// printedForms returns values that contain a secret.
func printedForms() []any {
	s := policy.Secret{ID: "s1", CreatedAt: time.Now(), Value: secret}
	cert := &policy.ClientCert{Chain: "chain", Key: secret}
	return []any{
		policy.Sealed(secret), new(policy.Sealed(secret)), s, &s,
		[]policy.Secret{s},
		*cert, cert,
		policy.Topic{Secrets: []policy.Secret{s}, ClientCert: cert},
		policy.Lane{Secrets: []policy.Secret{s}},
		map[string]policy.Sealed{"a": secret},
	}
}

func TestSealed_IsNotPrinted(t *testing.T) {
	for _, v := range printedForms() {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10.3s"} {
			got := fmt.Sprintf(verb, v)
			require.NotContains(t, got, "topsecret", "%s of %T", verb, v)
			require.NotContains(t, got, fmt.Sprintf("%x", "topsecret"), "%s of %T", verb, v)
		}
	}
	require.Equal(t, "[redacted]", policy.Sealed(secret).String())
	require.Equal(t, "[redacted]", fmt.Sprint(policy.Sealed(secret)))
	require.Equal(t, "[redacted]", fmt.Sprintf("%#v", policy.Sealed(secret)))
}

func TestSealed_IsNotLogged(t *testing.T) {
	var text, inJSON bytes.Buffer
	for _, v := range printedForms() {
		slog.New(slog.NewTextHandler(&text, nil)).Info("x", "v", v)
	}
	// A JSON log shows nested secrets in their JSON form; nothing logs such values.
	for _, v := range []any{
		policy.Sealed(secret), policy.Secret{ID: "s1", Value: secret}, policy.ClientCert{Key: secret},
	} {
		slog.New(slog.NewJSONHandler(&inJSON, nil)).Info("x", "v", v)
	}
	require.NotContains(t, text.String(), "topsecret")
	require.NotContains(t, inJSON.String(), "topsecret")
	require.Contains(t, inJSON.String(), "[redacted]")
	require.Contains(t, inJSON.String(), `"id":"s1"`)
}

// A store keeps the text.
func TestSealed_RoundTripsJSON(t *testing.T) {
	given := policy.Secret{ID: "s1", CreatedAt: time.UnixMilli(1_700_000_000_000).UTC(), Value: secret}
	text, err := json.Marshal(given)
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"s1","created_at":"2023-11-14T22:13:20Z","value":"whsec_topsecret"}`, string(text))
	var got policy.Secret
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, given, got)
}
