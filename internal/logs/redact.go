// This part of the package has the type of secrets that come from flags and variables, so that no log or error shows
// them.

package logs

import "log/slog"

// SecretMark is printed instead of a secret.
const SecretMark = "[redacted]"

// Secret is a secret. It prints as Mark, and as nothing if it is empty. Convert it to a string to use it.
type Secret string

// String returns Mark, or nothing if the secret is empty.
func (t Secret) String() string {
	if t == "" {
		return ""
	}
	return SecretMark
}

// GoString is String in quotes.
func (t Secret) GoString() string { return `"` + t.String() + `"` }

// LogValue is String.
func (t Secret) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText is String.
func (t Secret) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
