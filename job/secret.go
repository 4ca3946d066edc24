package job

import "strings"

// A header is secret if its name contains one of secretWords, or one of secretParts between hyphens: X-Auth is secret,
// Author is not. All are lower case. An idempotency key is not a secret.
var (
	secretWords = []string{
		"token", "secret", "password", "passwd", "passphrase", "api-key", "apikey", "credential", "signature", "authorization",
		"cookie", "session", "jwt",
	}
	secretParts = map[string]bool{"auth": true, "key": true}
)

// SecretHeader reports whether a header of this name carries a secret. Its value is never shown, and is removed where a
// receiver echoes it. Names are compared as foldName returns them.
func SecretHeader(name string) bool {
	name = foldName(name)
	for _, word := range secretWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(name, "idempotency-key"), "-") {
		if secretParts[part] {
			return true
		}
	}
	return false
}
