package policy

import (
	"bytes"

	"github.com/ringback/ringback/internal/utf8text"
)

// Success defines which responses are a success. The zero value is any 2xx.
type Success struct {
	// Status is the statuses that count as delivered. Default: 2xx.
	Status []string `json:"status,omitempty" api:"status" validate:"omitnil,min=1,max=100,dive,any_status"`
	// BodyEquals is the exact body, ignoring white space around it and a byte order mark. Empty or null: any.
	BodyEquals string `json:"body_equals,omitempty" api:"body_equals,empty" validate:"answer"`
	// BodyContains is a text that the body must contain. Empty or null: any.
	BodyContains string `json:"body_contains,omitempty" api:"body_contains,empty" validate:"answer"`
}

// MaxSuccessBody bounds BodyEquals and BodyContains, in bytes. Only the first 64 KiB of a response are read.
const MaxSuccessBody = 4 << 10

// defaultSuccess is the default of Success.Status.
var defaultSuccess = []string{"2xx"}

// IsZero reports whether no field is set.
func (s Success) IsZero() bool {
	return len(s.Status) == 0 && s.BodyEquals == "" && s.BodyContains == ""
}

// ReadsBody reports whether the response body is needed.
func (s Success) ReadsBody() bool { return s.BodyEquals != "" || s.BodyContains != "" }

// WithDefaults returns s with the default statuses if it lists none. The caller must not change them.
func (s Success) WithDefaults() Success {
	if len(s.Status) == 0 {
		s.Status = defaultSuccess
	}
	return s
}

// check reports whether a response is a success. note describes a mismatch of the body.
func (s Success) check(status int, body []byte) (ok bool, note string) {
	switch {
	case !matchesStatus(s.WithDefaults().Status, status):
		return false, ""
	case s.BodyEquals != "" && !bytes.Equal(trimmed(body), trimmed([]byte(s.BodyEquals))):
		return false, "response body does not equal success.body_equals" + encodingHint(body)
	case s.BodyContains != "" && !bytes.Contains(body, []byte(s.BodyContains)):
		return false, "response body does not contain success.body_contains" + encodingHint(body)
	}
	return true, ""
}

// encodingHint says that a body is in an encoding that matches nothing; empty: it is not.
func encodingHint(body []byte) string {
	if _, err := utf8text.Trim(body); err != nil {
		return ": it " + err.Error()
	}
	return ""
}

// trimmed returns a text without a byte order mark and surrounding white space.
func trimmed(text []byte) []byte {
	text, _ = utf8text.Trim(text)
	return bytes.TrimSpace(text)
}
