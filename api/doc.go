// Package api serves Ringback's HTTP API on a Service: routes, handlers and health. openapi.yaml, served at
// /openapi.yaml, is its contract. Packages content, jsonscan, request, response, ndjson and pages read and
// write, batch registers batches and streams; access, scope and limits refuse.
//
// A request that cannot be served now is answered with 503 and Retry-After. 500 means a bug, and its cause is logged. A
// signing secret is shown once, in the answer to the request that adds it. Other secrets are shown as [redacted].
//
// The handler is safe for concurrent use. Memory per request is bounded. Only streams start goroutines, at most two
// each, which end with them.
package api
