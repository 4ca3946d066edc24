package policy

import (
	"fmt"
	"io"
	"log/slog"
)

// Sealed is the stored form of a secret. It prints as [redacted] by every verb and in every log. Its JSON form, which
// stores keep, is the text itself: never log values that contain one as JSON.
type Sealed string

const redacted = "[redacted]"

// String hides the text.
func (Sealed) String() string { return redacted }

// Format hides the text from every verb: fmt prints a value in full when the verb does not fit.
func (Sealed) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue hides the text from a log in JSON.
func (Sealed) LogValue() slog.Value { return slog.StringValue(redacted) }

// LogValue hides the secret's value from a log in JSON.
func (s Secret) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", s.ID), slog.Time("created_at", s.CreatedAt),
		slog.String("value", redacted))
}

// Format hides the key: fmt does not call the methods of a pointer inside another value.
func (c ClientCert) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "{%s %s}", c.Chain, redacted) }

// LogValue hides the key from a log in JSON.
func (c ClientCert) LogValue() slog.Value {
	return slog.GroupValue(slog.String("chain", c.Chain), slog.String("key", redacted))
}
