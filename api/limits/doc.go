// Package limits bounds what clients may occupy of a process: connections, requests in flight, header lines, and bytes
// of bodies in memory.
//
// All of it is safe for concurrent use.
package limits
