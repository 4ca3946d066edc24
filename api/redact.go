package api

import "strings"

// redacted stands where a secret is not shown.
const redacted = "[redacted]"

// secrets are headers whose values are never shown, in lower case; so are those whose names hold one of secretWords.
var (
	secrets = map[string]bool{
		"authorization": true, "proxy-authorization": true, "cookie": true, "set-cookie": true, "x-api-key": true,
	}
	secretWords = []string{"token", "secret", "password"}
)

// secret reports whether a header of this name carries a secret.
func secret(name string) bool {
	name = strings.ToLower(name)
	if secrets[name] {
		return true
	}
	for _, word := range secretWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
