// Package e2e runs the built binary from outside, as its users do: over HTTP, with signals, against receivers that fail,
// hang and count. Each test runs on both engines; the Redis ones start a redis-server of their own.
//
// There is no code here but tests.
package e2e
