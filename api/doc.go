// Package api is the HTTP front of Ringback: it turns requests into calls of a Service and what comes of them into
// answers. openapi.yaml, served at /openapi.yaml, is its contract.
//
// It reads strictly: a field it does not know, a value out of its range, a name that stands twice are refused, every
// fault of a request at once, and then nothing was stored. No request leads to a 500; one that cannot be served now gets
// a 503 with Retry-After. Bodies of jobs are taken byte for byte. Secrets are not shown: a signing secret once, in the
// answer to the request that puts it; keys of certificates and the values of headers that carry secrets never, they are
// answered as [redacted].
//
// It holds no state and starts no goroutines but one or two for each stream of jobs, which end with it; the handler is safe for
// concurrent use. What a request needs of memory is bounded. It does not deliver, keep or decide anything: that is the
// Service's.
package api
