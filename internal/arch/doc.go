// Package arch has only tests: one checks the imports of all packages against the table in plan_test.go, one shows which files
// a new field of a job touches.
package arch
