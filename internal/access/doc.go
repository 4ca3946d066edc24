// Package access decides who may use the API for what: the text and the hash of tokens, roles, the actions that a role
// allows, and the topics that a token is restricted to.
//
// The package does no I/O and reads no clock. Its values are safe for concurrent use as long as no goroutine writes to
// them.
package access
