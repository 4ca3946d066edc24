// Package tracing makes the spans of registrations and attempts with OpenTelemetry, and carries their traces from one
// to the other in the headers of the jobs.
//
// A request that registers jobs is a server span, register. Its jobs carry its trace in their header Traceparent, as
// W3C Trace Context specifies it, and Tracestate. Each attempt is a span of that trace, attempt, with that header as
// its parent: a client span that the receiver continues, or a consumer span of a function or a client that leases. The
// job of a schedule's tick carries the trace of a span tick, a callback that of the attempt it reports.
//
// Spans that are not sampled cost little: their attributes are not computed. Package otlp below it exports spans.
package tracing
