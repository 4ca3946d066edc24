// Package stream has what the long requests of the client are made of: lines that are sent and read at once, events of
// a server, batches and work on leased jobs, with their waits between tries. It makes no request by itself.
package stream
