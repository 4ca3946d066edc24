//go:build !unix

package h1

// seesUnread reports whether unread works on this system.
const seesUnread = false

// unread returns false: this system has no support.
func unread(uintptr) bool { return false }
