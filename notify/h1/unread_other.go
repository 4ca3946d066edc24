//go:build !unix

package h1

// seesUnread is whether unread knows anything.
const seesUnread = false

// unread is not known here: what has come is known when it is read.
func unread(uintptr) bool { return false }
