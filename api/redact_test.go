package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHeadersThatCarrySecretsAreKnownByTheirNames(t *testing.T) {
	for _, name := range []string{
		"Authorization", "Proxy-Authorization", "X-Forwarded-Authorization", "Cookie", "Set-Cookie", "X-Api-Key", "Api-Key", "X_Api_Key",
		"Apikey", "X-ApiKey", "X-Auth", "X-Auth-Key", "Auth", "X_Auth_User", "X-Credential", "Credentials", "X-Hub-Signature-256",
		"Signature", "X-Access-Token", "AccessToken", "X-Client-Secret", "X-Password",
	} {
		for _, spelled := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			require.True(t, secret(spelled), spelled)
		}
	}
	for _, name := range []string{
		"", "Author", "X-Author", "X-Authority", "Authors-Note", "Content-Type", "X-Key", "X-Request-Id", "Idempotency-Key", "Api-Version",
		"Sign", "Accept",
	} {
		require.False(t, secret(name), name)
	}
}

func TestAJobIsShownWithoutItsSecrets(t *testing.T) {
	h := handlerOf(newFake())
	w := call(t, h, http.MethodPost, "/v1/jobs", `{"id": "a", "url": "http://a.example/",
		"headers": {"x-auth": "hunter2", "X-APIKEY": "hunter2", "x-signature": ["hunter2", "hunter2"], "Author": "jane"}}`)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	require.NotContains(t, w.Body.String(), "hunter2")
	require.Contains(t, w.Body.String(), "jane")
}
