// Package batch registers many jobs in one request: batches in JSON and streams in NDJSON, with a result for each job.
package batch
