package policy

import "time"

// ErrorClass classifies an attempt without a complete response. Classes are stable: they are stored, shown and counted.
type ErrorClass string

// The error classes. An attempt with a complete response has none, whatever its status.
const (
	ClassNone           ErrorClass = ""
	ClassDNS            ErrorClass = "dns"             // the host name did not resolve
	ClassRefused        ErrorClass = "refused"         // connection refused
	ClassUnreachable    ErrorClass = "unreachable"     // no route to the host or network
	ClassReset          ErrorClass = "reset"           // the connection ended before the response was complete
	ClassTLS            ErrorClass = "tls"             // the TLS handshake failed for a reason not listed below
	ClassTLSExpired     ErrorClass = "tls_expired"     // the certificate is expired or not yet valid
	ClassTLSName        ErrorClass = "tls_name"        // the certificate is for another name
	ClassTLSAuthority   ErrorClass = "tls_authority"   // the certificate's authority is not trusted
	ClassTLSVersion     ErrorClass = "tls_version"     // no common TLS version, or the receiver does not speak TLS
	ClassTLSClient      ErrorClass = "tls_client"      // the receiver rejected our certificate or requires one
	ClassProxy          ErrorClass = "proxy"           // the forward proxy was unreachable or refused
	ClassHTTP           ErrorClass = "http"            // the response is not HTTP
	ClassTooLarge       ErrorClass = "too_large"       // the response header exceeds the limits
	ClassTimeoutDial    ErrorClass = "timeout_dial"    // timed out while resolving or connecting
	ClassTimeoutTLS     ErrorClass = "timeout_tls"     // timed out in the TLS handshake
	ClassTimeoutHeaders ErrorClass = "timeout_headers" // timed out before the response header
	ClassTimeoutBody    ErrorClass = "timeout_body"    // timed out while reading the response body
	ClassTimeoutSend    ErrorClass = "timeout_send"    // timed out while writing the request
	ClassBlocked        ErrorClass = "blocked"         // the address is not allowed: final
	ClassInvalid        ErrorClass = "invalid"         // the job makes no valid request: final
	ClassNoURL          ErrorClass = "no_url"          // neither the job, its lane nor its topic has a URL
	ClassShutdown       ErrorClass = "shutdown"        // this process stopped: costs no retry
	// ClassLocalResources: this process or machine ran out of descriptors, memory or ports: costs no retry.
	ClassLocalResources ErrorClass = "local_resources"
	// ClassConsumer: the client that pulled the job, or the function that handles it, reported a failure.
	ClassConsumer ErrorClass = "consumer"
	ClassOther    ErrorClass = "other"
)

// ErrorClasses are the classes of attempts without a complete response, ClassOther last.
var ErrorClasses = [...]ErrorClass{
	ClassDNS, ClassRefused, ClassUnreachable, ClassReset, ClassTLS, ClassTLSExpired, ClassTLSName, ClassTLSAuthority,
	ClassTLSVersion, ClassTLSClient, ClassProxy, ClassHTTP, ClassTooLarge, ClassTimeoutDial, ClassTimeoutTLS,
	ClassTimeoutHeaders, ClassTimeoutBody, ClassTimeoutSend, ClassBlocked, ClassInvalid, ClassNoURL, ClassShutdown,
	ClassLocalResources, ClassConsumer, ClassOther,
}

// Timeout reports whether the class is a timeout.
func (c ErrorClass) Timeout() bool {
	switch c {
	case ClassTimeoutDial, ClassTimeoutTLS, ClassTimeoutHeaders, ClassTimeoutBody, ClassTimeoutSend:
		return true
	default:
		return false
	}
}

// Phases are the durations of a request's phases, one after the other. Zero: the phase did not take place, as with DNS,
// Connect and TLS of a reused connection. The phase in which a request failed has its time until then.
type Phases struct {
	DNS     time.Duration // until the host name was resolved
	Connect time.Duration // from then until the connection was open, through a forward proxy if there is one
	TLS     time.Duration // the handshake with the receiver
	// FirstByte is the time from the start of the request on its connection until the header of the answer.
	FirstByte time.Duration
}

// DurationUnit is the resolution of durations that are stored and shown.
const DurationUnit = 100 * time.Microsecond

// RoundUp rounds the phases up to DurationUnit, so that a phase that took place is not zero.
func (p Phases) RoundUp() Phases {
	return Phases{RoundUp(p.DNS), RoundUp(p.Connect), RoundUp(p.TLS), RoundUp(p.FirstByte)}
}

// RoundUp rounds a duration up to DurationUnit.
func RoundUp(d time.Duration) time.Duration {
	return (d + DurationUnit - 1).Truncate(DurationUnit)
}

// Result is the result of one attempt. A failing receiver is a value, not an error.
type Result struct {
	// Status is the response's status, 100 to 999; zero without a response.
	Status int
	// Class and Error describe why there was no response. Error is one line without the URL's query.
	Class ErrorClass
	Error string
	// RetryAfter is the response's Retry-After as a wait from receipt, or the wait that a consumer asked for; zero:
	// none.
	RetryAfter time.Duration
	// StartedAt and Duration are by the process's clock.
	StartedAt time.Time
	Duration  time.Duration
	Phases    Phases
	// RemoteAddr is the address and port that were dialled: the receiver's, or the forward proxy's. Empty: none was.
	RemoteAddr string
	// NonRetryable is set if the receiver or the consumer forbids a retry.
	NonRetryable bool
	// Accepted is set if a consumer confirmed the job. Then it is delivered, whatever the policy's Success is.
	Accepted bool
	// Header and Body are the response's, truncated by the sender.
	Header map[string][]string
	Body   []byte
	// Received is the body as it came, if Body has [redacted] in place of secrets that the receiver repeated. Judge
	// looks at it. It is not stored.
	Received []byte
}

// received returns the body that decides.
func (r *Result) received() []byte {
	if r.Received != nil {
		return r.Received
	}
	return r.Body
}

// Kind is the kind of a verdict.
type Kind uint8

// The kinds of verdicts. The zero Kind is not valid.
const (
	Delivered Kind = iota + 1 // ended: the receiver accepted it
	Again                     // due again after Wait
	Dead                      // ended: see Reason
	Released                  // due again after Wait; the attempt costs no retry
)

// String returns the verdict's name in the API, logs and metrics.
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

// Reason is why a job ended without being delivered.
type Reason string

// The reasons of dead jobs. Clients must accept unknown ones.
const (
	ReasonExhausted    Reason = "exhausted"    // no retries left
	ReasonExpired      Reason = "expired"      // past its expiry
	ReasonMaxAge       Reason = "max_age"      // older than the policy's max_age
	ReasonGaveUp       Reason = "gave_up"      // the status is in give_up_on
	ReasonNonRetryable Reason = "nonretryable" // the receiver or the consumer forbade a retry
	ReasonBlocked      Reason = "blocked"      // the address is not allowed
	ReasonInvalid      Reason = "invalid"      // the job makes no valid request
)

// Reasons returns all reasons in documented order.
func Reasons() []Reason {
	return []Reason{
		ReasonExhausted, ReasonExpired, ReasonMaxAge, ReasonGaveUp, ReasonNonRetryable, ReasonBlocked, ReasonInvalid,
	}
}

// Unreadable reports whether LaneWait is due to settings or secrets that cannot be read: the receiver was not asked.
func (v *Verdict) Unreadable() bool { return v.Kind == Released && v.LaneWait > 0 }

// Verdict is the decision on a job. Wait is a duration, not an instant: the store adds it to its clock.
type Verdict struct {
	Kind   Kind
	Wait   time.Duration
	Reason Reason
	// LaneWait is the cooldown of the whole lane, which the receiver asked for or the lane needs; zero: none.
	LaneWait time.Duration
	// Note explains the verdict where the result does not: why a response with a success status is not a success, or
	// why no request was made.
	Note string
}
