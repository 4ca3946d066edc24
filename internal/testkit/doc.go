// Package testkit tells tests how much to do and how long to wait, records what they log, and runs the go command for
// them.
package testkit
