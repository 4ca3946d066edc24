//go:build !unix

package notify

// pending is not known here: what has come is known when it is read.
func pending(uintptr) bool { return false }
