package sign

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted is printed instead of a secret.
const redacted = "[redacted]"

// String hides the secret.
func (Secret) String() string { return redacted }

// Format hides the secret from every verb of fmt, also %#v.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue hides the secret from logs.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the secret from encodings, such as JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
