package notify

import (
	"bytes"
	"slices"
	"strings"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// redacted replaces a secret in a response.
const redacted = "[redacted]"

// minSecret is the shortest secret that is redacted, in bytes: shorter ones match ordinary words, and their replacement
// would make a bounded result longer.
const minSecret = len(redacted)

// redact replaces values of the request's secret and sealed headers that the receiver repeated: results are stored in
// plain text, and shown to people who may not see the secrets.
func redact(result *policy.Result, req *job.Request) {
	received := result.Body
	defer func() {
		if !bytes.Equal(received, result.Body) {
			result.Received = received
		}
	}()
	for name, values := range req.Header {
		if !job.SecretHeader(name) && !slices.Contains(req.Sealed, name) {
			continue
		}
		for _, value := range values {
			for _, secret := range secretsIn(value) {
				redactOne(result, secret)
			}
		}
	}
}

// secretsIn returns a value and its part after a scheme (Bearer, Basic).
func secretsIn(value string) []string {
	secrets := []string{value}
	if _, after, ok := strings.Cut(value, " "); ok {
		secrets = append(secrets, after)
	}
	return secrets
}

func redactOne(result *policy.Result, secret string) {
	if len(secret) < minSecret {
		return
	}
	result.Error = strings.ReplaceAll(result.Error, secret, redacted)
	for _, values := range result.Header {
		for i, v := range values {
			values[i] = strings.ReplaceAll(withoutStart(v, secret), secret, redacted)
		}
	}
	if bytes.Contains(result.Body, []byte(secret)) {
		result.Body = bytes.ReplaceAll(result.Body, []byte(secret), []byte(redacted))
	}
	if whole := string(result.Body); withoutStart(whole, secret) != whole {
		result.Body = []byte(withoutStart(whole, secret))
	}
}

// withoutStart removes the start of a secret at the end of a truncated text.
func withoutStart(text, secret string) string {
	for n := min(len(secret)-1, len(text)); n >= minSecret; n-- {
		if strings.HasSuffix(text, secret[:n]) {
			return text[:len(text)-n] + redacted
		}
	}
	return text
}
