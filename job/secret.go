package job

import "strings"

// A header carries a secret when its name holds one of secretWords anywhere or one of secretParts between its hyphens:
// X-Auth is secret, Author is not. All are in lower case. An idempotency key is none of them: it opens nothing.
var (
	secretWords = []string{
		"token", "secret", "password", "passwd", "passphrase", "api-key", "apikey", "credential", "signature", "authorization",
		"cookie", "session", "jwt",
	}
	secretParts = map[string]bool{"auth": true, "key": true}
)

// SecretHeader reports whether a header of this name carries a secret: its value is not shown to anybody, nor kept where
// a receiver repeated it. Case does not matter, and whatever is neither a letter nor a digit counts as a hyphen.
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
