package job

import (
	"crypto/tls"
	"time"
)

// Request is one attempt as a deliverer gets it, with the topic's policy applied.
type Request struct {
	Ref         Ref
	Queue       Queue
	URL         string
	Method      string
	Header      map[string][]string // the topic's and the job's, canonical names
	Sealed      []string            // names of Header whose values are stored encrypted
	ContentType string
	Body        []byte
	Labels      map[string]string // of the job
	// Attempt is the attempt's number over all generations, from 1. RetriesLeft is the number of retries if it fails.
	Attempt     int
	RetriesLeft int
	// DueAt is when this attempt was due.
	DueAt time.Time
	// Timeout limits the whole attempt.
	Timeout time.Duration
	// KeepBody is the number of bytes of the response body to return; zero: MaxAttemptBody.
	KeepBody int
	// Sent, if set, is called when the body was written and is no longer needed. It is called at most once, from any
	// goroutine, and has returned when the attempt ends. It must not block.
	Sent func()
	Credentials
}

// Credentials authenticate an attempt to the receiver. The zero value is none.
type Credentials struct {
	// Signer signs the attempt; nil: not signed.
	Signer Signer
	// Certificate is the TLS client certificate; nil: none. Attempts with different pointers share no connection, so
	// equal certificates should be the same pointer.
	Certificate *tls.Certificate
}

// Signer signs requests.
type Signer interface {
	// Sign returns the value of webhook-signature for a message id, the attempt's time in whole seconds, and the body.
	Sign(id string, at time.Time, body []byte) string
}
