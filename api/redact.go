package api

import "strings"

// redacted stands where a secret is not shown.
const redacted = "[redacted]"

// A header carries a secret, and its value is never shown, when its name holds one of secretWords anywhere or one of
// secretParts between its hyphens: X-Auth-Key is secret, Author is not. All are in lower case.
var (
	secretWords = []string{
		"token", "secret", "password", "api-key", "apikey", "credential", "signature", "authorization", "cookie",
	}
	secretParts = map[string]bool{"auth": true}
)

// secret reports whether a header of this name carries a secret. An underscore counts as a hyphen.
func secret(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	for _, word := range secretWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	for part := range strings.SplitSeq(name, "-") {
		if secretParts[part] {
			return true
		}
	}
	return false
}
