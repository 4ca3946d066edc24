package job

import (
	"crypto/tls"
	"time"
)

// Request is one attempt to be made: everything that a deliverer needs, with the topic's policy already applied.
type Request struct {
	Ref         Ref
	Queue       Queue
	URL         string
	Method      string
	Header      map[string][]string // the topic's and the job's, canonical names
	ContentType string
	Body        []byte
	// Attempt is this attempt's number over all rounds, from 1; RetriesLeft how many would follow if it fails.
	Attempt     int
	RetriesLeft int
	// DueAt is when this attempt was due.
	DueAt time.Time
	// Timeout limits the whole attempt.
	Timeout time.Duration
	// KeepBody is how many bytes of the answer's body the result is to hold; zero: MaxAttemptBody.
	KeepBody int
	// Sent is called when the body was written and will not be sent again: the deliverer holds it no more. It is called at most
	// once, from any goroutine, and has returned when the attempt ends. It must not wait. Nil: nobody wants to know.
	Sent func()
	Credentials
}

// Credentials are what an attempt proves itself with. The zero value is none.
type Credentials struct {
	// Signer signs the attempt; nil: it is not signed.
	Signer Signer
	// Certificate is for receivers that ask for one over TLS; nil: there is none. Attempts with different certificates
	// share no connection: equal ones must be the same pointer for as long as they hold.
	Certificate *tls.Certificate
}

// A Signer signs requests.
type Signer interface {
	// Sign gives the value of webhook-signature for a message: its id, the time of the attempt, of which whole seconds
	// count, and its body's bytes.
	Sign(id string, at time.Time, body []byte) string
}
