// Package otlp exports spans by the OpenTelemetry Protocol over HTTP, as the standard environment variables say. It is
// off unless they name an endpoint.
//
// Ended spans wait in a bounded queue until they are sent, so an exporter that is slow or cannot reach its endpoint
// delays nothing: further spans are dropped, counted and logged at a bounded rate.
package otlp
