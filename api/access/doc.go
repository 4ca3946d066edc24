// Package access decides which requests the API serves: those of clients with the token, to a name of this server, and from
// no page of another origin. Requests that Ringback makes for a job are never served.
package access
