package job

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSecretHeader_MatchesNames(t *testing.T) {
	for _, name := range []string{
		"Authorization", "Proxy-Authorization", "X-Forwarded-Authorization", "Cookie", "Set-Cookie",
		"X-Api-Key", "Api-Key", "X_Api_Key", "Apikey", "X-ApiKey", "X-Auth", "X-Auth-Key", "Auth", "X_Auth_User",
		"X-Credential", "Credentials", "X-Hub-Signature-256", "Signature", "X-Access-Token", "AccessToken",
		"X-Client-Secret", "X-Password", "X-Key", "X-Access-Key", "Ocp-Apim-Subscription-Key", "X-Functions-Key",
		"X-Shared-Key", "X-Private-Key", "X-Session-Id", "Session", "X-Passwd", "X-Passphrase", "X-Jwt",
		"JWT-Assertion", "X.Api.Key", "X_Auth.User", "api_key", "X~Key",
	} {
		for _, spelled := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			require.True(t, SecretHeader(spelled), spelled)
		}
	}
	for _, name := range []string{
		"", "Author", "X-Author", "X-Authority", "Authors-Note", "Content-Type", "X-Monkey", "Keyword", "X-Request-Id",
		"Idempotency-Key", "X-Idempotency-Key", "Api-Version", "Sign", "Accept",
	} {
		require.False(t, SecretHeader(name), name)
	}
}

func TestHarmlessHeader_IsOnTheList(t *testing.T) {
	for _, name := range []string{
		"Accept", "Content-Type", "User-Agent", "Traceparent", "X-Request-Id", "X_Request_Id", "Idempotency-Key",
		"X-Team", "Ce-Type", "SOAPAction", "Ringback-Due-At", "X-RateLimit-Remaining",
	} {
		for _, spelled := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			require.True(t, HarmlessHeader(spelled), spelled)
		}
	}
	for _, name := range []string{
		"", "Authentication", "X-Otp", "X-Pin", "X-Hmac", "X-Client-Cert", "X-Forwarded-For", "Baggage",
		"X-A", "Referer", "Location", "Authorization", "Webhook-Signature", "X-Api-Key", "Ringback-Token", "X-Team-Key",
	} {
		require.False(t, HarmlessHeader(name), name)
	}
}
