package notify

import (
	"bytes"
	"strings"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// hidden stands where a receiver repeated a secret.
const hidden = "[redacted]"

// minSecret is the length from which on a secret is looked for: shorter ones are found in ordinary words, and what stands
// for them would make a bounded result longer.
const minSecret = len(hidden)

// hide takes out of a result what the request's secret headers held, should the receiver have repeated it as it was sent:
// results are stored and shown to people who may not see it.
func hide(result *policy.Result, header map[string][]string) {
	for name, values := range header {
		if !job.SecretHeader(name) {
			continue
		}
		for _, value := range values {
			for _, secret := range secretsIn(value) {
				hideOne(result, secret)
			}
		}
	}
}

// secretsIn gives a value, and what follows its scheme: Bearer, Basic.
func secretsIn(value string) []string {
	secrets := []string{value}
	if _, after, ok := strings.Cut(value, " "); ok {
		secrets = append(secrets, after)
	}
	return secrets
}

func hideOne(result *policy.Result, secret string) {
	if len(secret) < minSecret {
		return
	}
	result.Error = strings.ReplaceAll(result.Error, secret, hidden)
	for _, values := range result.Header {
		for i, v := range values {
			values[i] = strings.ReplaceAll(withoutStart(v, secret), secret, hidden)
		}
	}
	if bytes.Contains(result.Body, []byte(secret)) {
		result.Body = bytes.ReplaceAll(result.Body, []byte(secret), []byte(hidden))
	}
	if whole := string(result.Body); withoutStart(whole, secret) != whole {
		result.Body = []byte(withoutStart(whole, secret))
	}
}

// withoutStart cuts the beginning of a secret off the end of a text that was cut itself.
func withoutStart(text, secret string) string {
	for n := min(len(secret)-1, len(text)); n >= minSecret; n-- {
		if strings.HasSuffix(text, secret[:n]) {
			return text[:len(text)-n] + hidden
		}
	}
	return text
}
