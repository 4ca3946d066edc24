// Package arch has only tests: some check the imports of all packages against the table in plan_test.go, and their
// sizes; others count the files that a new field or route touches, and try one of each on every face.
package arch
