// Package arch has only a test: it checks the imports of all packages against the table in plan_test.go.
package arch
