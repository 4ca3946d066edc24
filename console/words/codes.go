package words

import (
	"maps"
	"slices"
	"strconv"
)

// A vocabulary has the words for the codes of one kind.
type vocabulary map[string]string

// of returns the words for a code, or the code itself if it is unknown: later versions of the API may add some.
func (v vocabulary) of(code string) string {
	if text, ok := v[code]; ok {
		return text
	}
	return code
}

var reasons = vocabulary{
	"exhausted":    "all retries are used up",
	"expired":      "its expiry passed, or would have before the next attempt",
	"max_age":      "it became older than max_age of its topic, or would have before the next attempt",
	"gave_up":      "the topic gives up on this status",
	"nonretryable": "the receiver asked for no more attempts",
	"blocked":      "its address may not be called",
	"invalid":      "no request can be built from it",
	"cancelled":    "it was cancelled",
}

// Reason returns why a job is dead, as a clause after "because".
func Reason(code string) string { return reasons.of(code) }

var verdicts = vocabulary{
	"delivered": "delivered",
	"again":     "failed, to be tried again",
	"dead":      "failed, and the job is dead",
	"released":  "given back, not counted",
	"cancelled": "failed, and the job was cancelled",
}

// Verdict returns what came of an attempt, as a participle.
func Verdict(code string) string { return verdicts.of(code) }

var errorClasses = vocabulary{
	"dns":             "the host name did not resolve",
	"refused":         "the connection was refused",
	"unreachable":     "there is no route to the receiver",
	"reset":           "the connection ended before the answer was complete",
	"proxy":           "the forward proxy was unreachable, or refused",
	"tls":             "the TLS handshake failed",
	"tls_expired":     "the receiver's certificate is expired or not yet valid",
	"tls_name":        "the receiver's certificate is for another name",
	"tls_authority":   "the authority of the receiver's certificate is not trusted",
	"tls_version":     "the port does not speak TLS, or no common version of it",
	"tls_client":      "the receiver rejected the client certificate, or requires one",
	"http":            "the answer is not HTTP",
	"too_large":       "the header of the answer is too large",
	"timeout_dial":    "the timeout expired while connecting",
	"timeout_tls":     "the timeout expired in the TLS handshake",
	"timeout_send":    "the timeout expired while sending the request",
	"timeout_headers": "the timeout expired before an answer",
	"timeout_body":    "the timeout expired while reading the answer",
	"blocked":         "its address may not be called",
	"invalid":         "no request can be built from the job",
	"no_url":          "neither the job, its lane nor its topic has a URL",
	"shutdown":        "Ringback stopped",
	"local_resources": "Ringback ran out of file descriptors, memory or ports",
	"consumer":        "the consumer reported a failure",
	"other":           "there was no complete answer",
}

// ErrorClass returns why an attempt got no complete answer, as a clause after "because".
func ErrorClass(code string) string { return errorClasses.of(code) }

// Answer returns what came of the last attempt of a job.
func Answer(status int, class string) string {
	switch {
	case status != 0, class == "consumer":
		return Failure(status, class)
	case class == "":
		return "no attempt ended"
	}
	return "no answer: " + ErrorClass(class)
}

// Failure says what came of a failed attempt, as a clause: "answered 500". A status of 0 is none.
func Failure(status int, class string) string {
	switch {
	case status != 0:
		return "answered " + strconv.Itoa(status)
	case class != "":
		return ErrorClass(class)
	default:
		return "failed"
	}
}

// ErrorClasses returns the codes of ErrorClass.
func ErrorClasses() []string { return slices.Sorted(maps.Keys(errorClasses)) }

var changes = vocabulary{
	"created":   "registered",
	"edited":    "edited",
	"run":       "run now",
	"revived":   "revived",
	"cancelled": "cancelled",
	"dead":      "died without an attempt",
	"paused":    "paused",
	"resumed":   "resumed",
}

// Change returns what happened to a job, a lane or a topic: the kind of an event, or of a change in the live view.
func Change(code string) string { return changes.of(code) }

var jobKinds = vocabulary{
	"all":        "all jobs",
	"registered": "registered by clients",
	"callback":   "callbacks about jobs",
	"backlog":    "callbacks about backlogs",
	"work":       "bulk work",
	"schedule":   "schedules",
}

// JobKind returns which jobs are of a kind.
func JobKind(code string) string { return jobKinds.of(code) }

var roles = vocabulary{
	"read":    "reads everything but secrets, tokens and namespaces",
	"publish": "registers jobs, and reads or cancels a job by its id",
	"operate": "reads, and runs, edits, cancels and revives jobs, pauses, and works on many jobs",
	"admin":   "does everything in its namespace",
}

// Role returns what a token of a role does.
func Role(code string) string { return roles.of(code) }

var tickOutcomes = vocabulary{
	"run":     "run",
	"skipped": "skipped: the job of the tick before was unfinished",
	"missed":  "missed: it was too late",
	"failed":  "failed: its job was refused",
}

// TickOutcome returns what came of a tick of a schedule.
func TickOutcome(code string) string { return tickOutcomes.of(code) }

var keyKinds = vocabulary{
	"hmac":    "a secret that receivers share",
	"ed25519": "a key, of which receivers get the public half",
}

// KeyKind returns what a signing secret is.
func KeyKind(code string) string { return keyKinds.of(code) }
