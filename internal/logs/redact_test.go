package logs_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/logs"
)

func TestText_PrintsRedacted(t *testing.T) {
	secret := logs.Secret("s3cret")
	in := struct{ Secret logs.Secret }{secret}
	text, err := json.Marshal(in)
	require.NoError(t, err)
	for _, shown := range []string{
		secret.String(), fmt.Sprint(secret), fmt.Sprintf("%s %v %+v %#v %q", secret, secret, secret, secret, secret),
		string(text), secret.LogValue().String(), fmt.Sprintf("%+v %#v", in, in),
	} {
		require.NotContains(t, shown, "s3cret")
		require.Contains(t, shown, logs.SecretMark)
	}
	require.Empty(t, logs.Secret("").String())
}
