//go:build testall

package testlevel

// All reports whether the tests run as in make test-all.
const All = true
