// Package ndjson reads a stream of lines and writes results while it is read, with bounded memory and with deadlines
// for clients that send or read too slowly.
//
// A Reader splits the stream into lines. A ResultBuffer keeps results until the client reads them, and has one
// goroutine, which ends with Stop. Deadlines bound both.
package ndjson
