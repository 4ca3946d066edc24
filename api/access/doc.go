// Package access decides which requests the API serves and whose they are: requests with a token, to a name of this
// server, and from no page of another origin. Requests that Ringback makes for a job are never served. What a token may
// do is decided by the package access of the module.
package access
