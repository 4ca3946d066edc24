package policy

import "time"

// ErrorClass names why an attempt got no answer. Classes are stable: they are stored, shown and counted.
type ErrorClass string

// The classes of failed attempts. An attempt that got a complete answer has none, whatever its status.
const (
	ClassNone           ErrorClass = ""
	ClassDNS            ErrorClass = "dns"             // the host's name did not resolve
	ClassRefused        ErrorClass = "refused"         // nobody listens at the address
	ClassUnreachable    ErrorClass = "unreachable"     // no route to the host or network
	ClassReset          ErrorClass = "reset"           // the connection ended before the answer was complete
	ClassTLS            ErrorClass = "tls"             // the TLS handshake failed for another reason than the next ones
	ClassTLSExpired     ErrorClass = "tls_expired"     // the certificate is not valid any more, or yet
	ClassTLSName        ErrorClass = "tls_name"        // the certificate is for another name
	ClassTLSAuthority   ErrorClass = "tls_authority"   // the certificate comes from nobody who is trusted
	ClassTLSVersion     ErrorClass = "tls_version"     // no common version of TLS, or none is spoken there
	ClassTLSClient      ErrorClass = "tls_client"      // the receiver refused our certificate, or asks for one
	ClassProxy          ErrorClass = "proxy"           // the forward proxy was not there, or refused
	ClassHTTP           ErrorClass = "http"            // what came back is no HTTP
	ClassTooLarge       ErrorClass = "too_large"       // the answer's header has more bytes or lines than are read
	ClassTimeoutDial    ErrorClass = "timeout_dial"    // the time ran out while resolving or connecting
	ClassTimeoutTLS     ErrorClass = "timeout_tls"     // the time ran out in the TLS handshake
	ClassTimeoutHeaders ErrorClass = "timeout_headers" // the time ran out before the answer's header was there
	ClassTimeoutBody    ErrorClass = "timeout_body"    // the time ran out while the answer's body was read
	ClassTimeoutSend    ErrorClass = "timeout_send"    // the time ran out while the request was written
	ClassBlocked        ErrorClass = "blocked"         // the address is one that may not be called: final
	ClassInvalid        ErrorClass = "invalid"         // the request cannot be made of this job: final
	ClassShutdown       ErrorClass = "shutdown"        // our own process stopped: not the receiver's fault, uncounted
	// ClassLocalResources: our own process or machine had no descriptor, memory or port left: not the receiver's fault,
	// uncounted.
	ClassLocalResources ErrorClass = "local_resources"
	ClassOther          ErrorClass = "other"
)

// Timeout reports whether the class says that time ran out.
func (c ErrorClass) Timeout() bool {
	switch c {
	case ClassTimeoutDial, ClassTimeoutTLS, ClassTimeoutHeaders, ClassTimeoutBody, ClassTimeoutSend:
		return true
	default:
		return false
	}
}

// Result is what came of one attempt. It is a value, not an error: a receiver that fails is a normal day.
type Result struct {
	// Status is the answer's, 100 to 999; zero when there was no answer.
	Status int
	// Class and Error say why there was no answer; Error is one line for a person, without the URL's query.
	Class ErrorClass
	Error string
	// RetryAfter is what the receiver asked for, turned into a wait on receipt; zero when it asked for nothing.
	RetryAfter time.Duration
	// StartedAt and Duration time the attempt by the process's clock.
	StartedAt time.Time
	Duration  time.Duration
	// NonRetryable: the receiver says that another attempt would be in vain.
	NonRetryable bool
	// Header and Body are the answer's, capped by who read it.
	Header map[string][]string
	Body   []byte
}

// Kind says which way a job goes after an attempt.
type Kind uint8

// The four verdicts. The zero Kind is none of them.
const (
	Delivered Kind = iota + 1 // the receiver has it
	Again                     // due again after Wait
	Dead                      // never again, because of Reason
	Released                  // due again after Wait, and the attempt does not count
)

// String is the verdict's name in the API, in logs and in metrics.
func (k Kind) String() string {
	switch k {
	case Delivered:
		return "delivered"
	case Again:
		return "again"
	case Dead:
		return "dead"
	case Released:
		return "released"
	default:
		return "none"
	}
}

// Reason says why a job ended without being delivered.
type Reason string

// The reasons for which a job dies. Clients must bear others: more may come.
const (
	ReasonExhausted    Reason = "exhausted"    // every retry was used
	ReasonExpired      Reason = "expired"      // its own expiry passed
	ReasonMaxAge       Reason = "max_age"      // older than the policy's max_age
	ReasonGaveUp       Reason = "gave_up"      // the status is in give_up_on
	ReasonNonRetryable Reason = "nonretryable" // the receiver said that another attempt would be in vain
	ReasonBlocked      Reason = "blocked"      // the address may not be called
	ReasonInvalid      Reason = "invalid"      // no request can be made of the job
)

// Reasons are all of them, in the order in which they are documented.
func Reasons() []Reason {
	return []Reason{
		ReasonExhausted, ReasonExpired, ReasonMaxAge, ReasonGaveUp, ReasonNonRetryable, ReasonBlocked, ReasonInvalid,
	}
}

// Verdict is what policy decides. Wait is a duration, never an instant: the store adds it to its own clock.
type Verdict struct {
	Kind   Kind
	Wait   time.Duration
	Reason Reason
	// LaneWait is for how long the receiver asked to be left alone by the whole lane; zero: it did not.
	LaneWait time.Duration
	// Note is for a person: why an answer with a good status is none.
	Note string
}
