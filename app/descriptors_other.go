//go:build !unix

package app

// descriptorLimit is not known here.
func descriptorLimit() int { return 0 }
