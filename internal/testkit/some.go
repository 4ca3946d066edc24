//go:build !testall

package testkit

// All reports whether the tests run as in make test-all.
const All = false
