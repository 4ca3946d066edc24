// Package form makes forms of what the API reads: fields with texts.
//
// A Form has a field for each member of a type of package client; a member of an object is a field of its own, with a
// full stop in its name, as in breaker.open. A text is made JSON by the Go type of its member: a list is split at
// commas and spaces, headers and labels at lines, and a body is sent byte for byte. No value is interpreted: the API
// reads it, and says what is wrong with it at the field. What a person did not change is sent as it was stored.
//
// The functions are pure, and a Form is safe for concurrent use.
package form
