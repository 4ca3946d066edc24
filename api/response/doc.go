// Package response writes the API's answers: a JSON buffer, the members of jobs, topics, lanes and statistics, and
// problems (RFC 9457). FromError is the one table from errors to statuses.
//
// Resources are written by the tags of their types: see job.Member. What is computed is written beside.
//
// Values of secret headers and keys of certificates are written as [redacted], and unless Buffer.ShowHeadersTo allows
// them those of all headers that are not known to be harmless.
package response
