//go:build !unix

package app

// descriptorLimit returns 0, unknown, on this platform.
func descriptorLimit() int { return 0 }
