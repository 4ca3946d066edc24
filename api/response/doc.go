// Package response writes the API's answers: a JSON buffer, the members of jobs, topics, lanes and statistics, and
// problems (RFC 9457). FromError is the one table from errors to statuses.
//
// Values of secret headers and keys of certificates are written as [redacted].
package response
