package policy

import (
	"bytes"
	"strings"
)

// Success says which answers are one. The zero value takes 2xx, whatever the body.
type Success struct {
	// Status lists statuses ("200") and classes ("2xx"); none: 2xx.
	Status []string `json:"status,omitempty"`
	// BodyEquals is what the body must be, white space around either left out; empty: anything.
	BodyEquals string `json:"body_equals,omitempty"`
	// BodyContains is what the body must hold; empty: anything.
	BodyContains string `json:"body_contains,omitempty"`
}

// MaxSuccessBody bounds what a success may ask of a body, in bytes: what lies beyond the first 64 KiB of an answer is not
// read.
const MaxSuccessBody = 4 << 10

// okStatus is what Success means by no Status.
var okStatus = []string{"2xx"}

// IsZero reports whether nothing is said.
func (s Success) IsZero() bool {
	return len(s.Status) == 0 && s.BodyEquals == "" && s.BodyContains == ""
}

// ReadsBody reports whether the body matters.
func (s Success) ReadsBody() bool { return s.BodyEquals != "" || s.BodyContains != "" }

// judge reports whether an answer is a success; note says why not when its status would be one.
func (s Success) judge(status int, body []byte) (ok bool, note string) {
	patterns := s.Status
	if len(patterns) == 0 {
		patterns = okStatus
	}
	switch {
	case !matches(patterns, status):
		return false, ""
	case s.BodyEquals != "" && !bytes.Equal(bytes.TrimSpace(body), []byte(strings.TrimSpace(s.BodyEquals))):
		return false, "the body of the answer is not what success.body_equals asks for"
	case s.BodyContains != "" && !bytes.Contains(body, []byte(s.BodyContains)):
		return false, "the body of the answer does not hold what success.body_contains asks for"
	}
	return true, ""
}
