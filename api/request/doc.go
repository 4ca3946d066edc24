// Package request reads the API's requests: bodies of bounded size, fields of JSON, parameters, paths, and the
// conditions of If-Match and If-None-Match.
//
// It reads strictly. Unknown fields, values out of range and duplicate keys are refused with a *response.Problem, which
// lists every invalid field of the request. A job's body is taken byte for byte. Client errors never contain a secret
// that was sent.
//
// The members of settings and jobs are read by the tags of their types: see job.Member. Others have tables of readers.
//
// Stored values are passed to it only where a PUT or PATCH merges into them. Its functions are safe for concurrent use.
// A decoder serves one request.
package request
