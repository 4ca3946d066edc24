// Package redact has the type of secrets that come from flags and variables, so that no log or error shows them.
package redact

import "log/slog"

// Mark is printed instead of a secret.
const Mark = "[redacted]"

// Text is a secret. It prints as Mark, and as nothing if it is empty. Convert it to a string to use it.
type Text string

// String returns Mark, or nothing if the secret is empty.
func (t Text) String() string {
	if t == "" {
		return ""
	}
	return Mark
}

// GoString is String in quotes.
func (t Text) GoString() string { return `"` + t.String() + `"` }

// LogValue is String.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText is String.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
