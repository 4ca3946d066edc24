package store

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"github.com/ringback/ringback/job"
)

// LeaseRequest asks for jobs of a topic with the policy deliver: pull.
type LeaseRequest struct {
	Namespace string
	Topic     string
	// Lanes are names of lanes, or prefixes with * at the end; none: all lanes.
	Lanes []string
	Max   int // jobs, from 1 to MaxLeased
	// Wait is how long to wait for the first job.
	Wait time.Duration
	// Lease is the length of the leases of jobs that set no timeout; zero: the topic's timeout.
	Lease time.Duration
	// Request asks for the request that a push would make, with each job.
	Request bool
}

// The bounds of leases that clients ask for.
const (
	MaxLeased     = 100
	MaxLeaseWait  = time.Minute
	MinLease      = time.Second
	MaxLease      = 12 * time.Hour
	MaxLeaseLanes = 32
)

// LeasedJob is a job with a client's lease.
type LeasedJob struct {
	ClaimedJob
	ClientLease ClientLease
	// Until is the end of the lease, by the store's clock. Settlements that come up to LeaseMargin later may still be
	// in time.
	Until time.Time
	// Request is the request that a push would make, without secret headers; nil: the client has not asked for it.
	Request *job.Request
}

// ClientLease is a lease as a client has it. It contains what settling the attempt needs, so that any process can
// settle it without reading the job. Its MAC shows that nothing in it was changed: who settles a lease checks it first.
type ClientLease struct {
	ID    string
	Queue job.Queue // its Namespace is that of the client, not of the text
	Token Token
	// LeasedAt is the beginning of the attempt, by the store's clock. Age, Late and ExpiresIn are the job's at that
	// time, in whole milliseconds, and not negative.
	LeasedAt  time.Time
	Age       time.Duration
	Late      time.Duration
	Expires   bool
	ExpiresIn time.Duration
	// Attempts and FailedAttempts are the job's before the attempt.
	Attempts       int
	FailedAttempts int
	OwnCallbacks   bool // the job has its own callbacks
	OwnRetries     bool // the job has its own retries or ladder
	// Retries and Rung are valid if OwnRetries is set: the job's retries, and the wait of its ladder after this
	// attempt, in whole milliseconds; zero: the topic's ladder.
	Retries int
	Rung    time.Duration
	Probe   bool // the lane's breaker was open
	// Trace is the trace that the job carries, as in job.HeaderTraceparent; empty: none, or attempts are not traced.
	Trace string
	// MAC authenticates the other fields. Sign sets it.
	MAC LeaseMAC
}

// LeaseKey is the key that authenticates the leases of a store's clients.
type LeaseKey [32]byte

// LeaseMAC is a message authentication code: half of an HMAC-SHA256.
type LeaseMAC [sha256.Size / 2]byte

// Sign sets the MAC of a lease.
func (l *ClientLease) Sign(key LeaseKey) { l.MAC = l.mac(key) }

// IsSigned reports whether a lease is as it was signed with a key.
func (l *ClientLease) IsSigned(key LeaseKey) bool {
	mac := l.mac(key)
	return hmac.Equal(mac[:], l.MAC[:])
}

func (l *ClientLease) mac(key LeaseKey) (mac LeaseMAC) {
	h := hmac.New(sha256.New, key[:])
	_, _ = h.Write(l.appendFields(appendText(make([]byte, 0, 256), l.Queue.Namespace))) // it never fails
	copy(mac[:], h.Sum(nil))
	return mac
}

// Ref returns the reference of the job.
func (l *ClientLease) Ref() job.Ref { return job.Ref{Namespace: l.Queue.Namespace, ID: l.ID} }

// The flags of a ClientLease's text.
const (
	leaseExpires = 1 << iota
	leaseOwnCallbacks
	leaseProbe
	leaseOwnRetries
	leaseTrace
	leaseFlags // more than all
)

// MaxLeaseTrace bounds the Trace of a ClientLease, in bytes.
const MaxLeaseTrace = 64

// maxLeaseText is more than the longest text of a lease has.
const maxLeaseText = 1024

var leaseEncoding = base64.RawURLEncoding.Strict()

// String returns the text for the client.
func (l *ClientLease) String() string {
	return leaseEncoding.EncodeToString(append(l.appendFields(make([]byte, 0, 256)), l.MAC[:]...))
}

// appendFields appends the fields in the text but the MAC.
func (l *ClientLease) appendFields(b []byte) []byte {
	flags := uint64(0)
	if l.Expires {
		flags |= leaseExpires
	}
	if l.OwnCallbacks {
		flags |= leaseOwnCallbacks
	}
	if l.OwnRetries {
		flags |= leaseOwnRetries
	}
	if l.Probe {
		flags |= leaseProbe
	}
	if l.Trace != "" {
		flags |= leaseTrace
	}
	b = binary.AppendUvarint(b, flags)
	for _, n := range [...]int64{
		l.LeasedAt.UnixMilli(), l.Age.Milliseconds(), l.Late.Milliseconds(), l.ExpiresIn.Milliseconds(),
		int64(l.Attempts), int64(l.FailedAttempts),
	} {
		b = binary.AppendVarint(b, n)
	}
	if l.OwnRetries {
		b = binary.AppendVarint(binary.AppendVarint(b, int64(l.Retries)), l.Rung.Milliseconds())
	}
	for _, s := range [...]string{string(l.Token), l.Queue.Topic, l.Queue.Lane, l.ID} {
		b = appendText(b, s)
	}
	if l.Trace != "" {
		b = appendText(b, l.Trace)
	}
	return b
}

// appendText appends a text with its length before it.
func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// ErrLeaseText: a text is not of the form of ClientLease.String.
var ErrLeaseText = errors.New("not the text of a lease")

// ParseClientLease reads the text of a lease of a client of a namespace. What it returns is as the client says, until
// IsSigned has checked it. With an error it is the zero lease, which is not signed.
func ParseClientLease(namespace, text string) (l ClientLease, err error) {
	if len(text) > maxLeaseText {
		return ClientLease{}, ErrLeaseText
	}
	b, err := leaseEncoding.DecodeString(text)
	if err != nil {
		return ClientLease{}, ErrLeaseText
	}
	r := leaseReader{b}
	flags := r.uvarint()
	l = ClientLease{
		LeasedAt: time.UnixMilli(r.varint()).UTC(), Age: r.millis(), Late: r.millis(), ExpiresIn: r.millis(),
		Attempts: int(r.varint()), FailedAttempts: int(r.varint()),
		Expires: flags&leaseExpires != 0, Probe: flags&leaseProbe != 0,
		OwnCallbacks: flags&leaseOwnCallbacks != 0, OwnRetries: flags&leaseOwnRetries != 0,
	}
	if l.OwnRetries {
		l.Retries, l.Rung = int(r.varint()), r.millis()
	}
	l.Token, l.Queue = Token(r.text()), job.Queue{Namespace: namespace, Topic: r.text(), Lane: r.text()}
	l.ID = r.text()
	if flags&leaseTrace != 0 {
		l.Trace = r.text()
	}
	ok := len(r.left) == len(l.MAC) && flags < leaseFlags && len(l.Token) == len(NewToken()) &&
		len(l.Trace) <= MaxLeaseTrace && job.IsTopic(l.Queue.Topic) && job.IsLane(l.Queue.Lane) && job.IsID(l.ID)
	if copy(l.MAC[:], r.left); !ok || l.String() != text { // numbers may be written in several ways
		return ClientLease{}, ErrLeaseText
	}
	return l, nil
}

// leaseReader reads the bytes of a lease. After an error left is nil, and everything read is zero.
type leaseReader struct{ left []byte }

func (r *leaseReader) uvarint() uint64 {
	n, width := binary.Uvarint(r.left)
	return advance(r, n, width)
}

func (r *leaseReader) varint() int64 {
	n, width := binary.Varint(r.left)
	return advance(r, n, width)
}

// advance returns a number that was read in width bytes.
func advance[T uint64 | int64](r *leaseReader, n T, width int) T {
	if width <= 0 {
		r.left = nil
		return 0
	}
	r.left = r.left[width:]
	return n
}

func (r *leaseReader) millis() time.Duration { return time.Duration(r.varint()) * time.Millisecond }

func (r *leaseReader) text() string {
	n := r.uvarint()
	if n > uint64(len(r.left)) {
		r.left = nil
	}
	text := r.left[:min(n, uint64(len(r.left)))]
	r.left = r.left[len(text):]
	return string(text)
}

// LeaseReport is what a client reports about its lease: how the attempt ended, or that it takes longer.
type LeaseReport struct {
	Lease  ClientLease
	Result LeaseResult
	// After, with LeaseRetry, replaces the ladder's wait; nil: the ladder's. With LeaseAnswered it is the receiver's
	// Retry-After.
	After *time.Duration
	// Status, with LeaseAnswered, is that of a receiver's response, from 100 to 999. NonRetryable: it forbids a retry.
	Status       int
	NonRetryable bool
	// For, with LeaseExtend, is how much longer the lease lasts from now on.
	For time.Duration
	// Error, with LeaseRetry and LeaseDead, says why; Response, with LeaseDone and LeaseAnswered, is stored with the
	// attempt.
	Error    string
	Response []byte
}

// LeaseResult is the kind of a LeaseReport.
type LeaseResult uint8

// The kinds of reports.
const (
	LeaseDone LeaseResult = iota + 1
	LeaseRetry
	LeaseDead
	LeaseExtend
	LeaseAnswered // a receiver has answered: judged as a push
	LeaseRelease  // due again at once; the attempt costs no retry
)

// NotPulledError is the error of a request for jobs of a topic that is not pulled.
type NotPulledError struct{ Topic string }

func (e *NotPulledError) Error() string {
	return "the topic " + e.Topic + ` is not pulled: set "deliver": "pull" in its policy`
}

// ErrStopping: the process stops, and leases no jobs.
var ErrStopping = errors.New("the process is shutting down")
