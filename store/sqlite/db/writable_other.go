//go:build !unix

package db

// isWritable returns true: whether a file can be written is seen when it is.
func isWritable(string) bool { return true }
