// Package limits bounds what clients may occupy of a process: connections, requests in flight, header lines, bytes of
// bodies in memory, time, and lines in the log.
//
// All of it is safe for concurrent use.
package limits
