// Package arch holds the floor plan: which package may import which. It has no code of its own, only a test that holds
// what is there against the table in plan_test.go.
package arch
