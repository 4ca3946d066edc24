// Package e2e has only tests. They run the built binary as users do: over HTTP and with signals, against receivers that
// fail, hang and count. Each test runs on both engines; those on Redis start a redis-server.
package e2e
