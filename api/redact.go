package api

import "github.com/ringback/ringback/job"

// Redacted stands where a secret is not shown.
const Redacted = "[redacted]"

// secret reports whether the value of a header of this name is never shown.
func secret(name string) bool { return job.SecretHeader(name) }
