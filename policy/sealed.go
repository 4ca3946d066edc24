package policy

import (
	"fmt"
	"io"
	"log/slog"
)

// Sealed is a secret's text in the form in which it is kept. It prints as [redacted], by whatever verb and to every log;
// its JSON form, which stores keep, is the text. So a value that holds one is never logged in its JSON form.
type Sealed string

const redacted = "[redacted]"

// String hides the text.
func (Sealed) String() string { return redacted }

// Format hides the text from every verb: fmt prints what it takes for the wrong one in full.
func (Sealed) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue hides the text from a log in JSON.
func (Sealed) LogValue() slog.Value { return slog.StringValue(redacted) }

// LogValue hides the secret's value from a log in JSON.
func (s Secret) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", s.ID), slog.Time("created_at", s.CreatedAt), slog.String("value", redacted))
}

// Format hides the key: a pointer inside of something else is printed past the methods of what it leads to.
func (c ClientCert) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "{%s %s}", c.Chain, redacted) }

// LogValue hides the key from a log in JSON.
func (c ClientCert) LogValue() slog.Value {
	return slog.GroupValue(slog.String("chain", c.Chain), slog.String("key", redacted))
}
