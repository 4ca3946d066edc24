package badreceiver

// A Kind says in which way a receiver is bad. Its text is fit for the name of a test.
type Kind string

// The two that are not bad, to compare with.
const (
	// Good answers 200 and "ok" to every request.
	Good Kind = "good"
	// GoodTLS is Good over TLS, with a certificate that Roots trusts.
	GoodTLS Kind = "good_tls"
)

// Those that give no answer. Where nothing else is said, a kind reads the whole request first.
const (
	// NeverAccepts listens, and its queue of connections is full: a connect neither succeeds nor fails.
	NeverAccepts Kind = "never_accepts"
	// Refuses has nobody listening.
	Refuses Kind = "refuses"
	// NeverAnswers reads whatever comes and never writes.
	NeverAnswers Kind = "never_answers"
	// HalfClosed ends its side of the connection instead of answering, and leaves the other one open.
	HalfClosed Kind = "half_closed"
)

// Those that are slow.
const (
	// DripsHeader sends a header byte by byte, for ever.
	DripsHeader Kind = "drips_header"
	// DripsBody sends a good header at once, then a body byte by byte, for ever.
	DripsBody Kind = "drips_body"
)

// Those that send too much, as fast as they can.
const (
	// GigabyteBody sends Gigabyte bytes of body, and announces them.
	GigabyteBody Kind = "gigabyte_body"
	// EndlessBody sends chunks for ever.
	EndlessBody Kind = "endless_body"
	// GzipBomb sends about a megabyte that says it is gzip and unpacks to Gigabyte bytes, asked for or not.
	GzipBomb Kind = "gzip_bomb"
	// HugeHeader sends 100 MiB of header.
	HugeHeader Kind = "huge_header"
	// EndlessInterim sends 100 Continue and 103 Early Hints for ever.
	EndlessInterim Kind = "endless_interim"
)

// Those that break off a body after half of it.
const (
	// ResetsMidAnswer does so with a TCP reset.
	ResetsMidAnswer Kind = "resets_mid_answer"
	// ClosesMidAnswer does so with a regular end of the connection.
	ClosesMidAnswer Kind = "closes_mid_answer"
)

// Those that break the rules of HTTP.
const (
	// Garbage answers with lines of bytes that are not HTTP.
	Garbage Kind = "garbage"
	// NoHeader answers as HTTP/0.9 did: a page, and nothing before it.
	NoHeader Kind = "no_header"
	// PromisesMore sends less of a body than it announced, and keeps the connection open.
	PromisesMore Kind = "promises_more"
	// SendsMore sends more than the body that it announced: "ok" it is, and what follows looks like an answer to another
	// request: 299 and "forged".
	SendsMore Kind = "sends_more"
	// ClosesAfter answers as Good does, as if it kept the connection, and closes it.
	ClosesAfter Kind = "closes_after_answer"
	// TwoLengths announces two different lengths of one body.
	TwoLengths Kind = "two_lengths"
	// AnswersEarly answers 413 after the first byte of a request, and closes without reading the rest, which resets the
	// connection. Only a request that was written whole by then (a few KiB) is sure to see the answer.
	AnswersEarly Kind = "answers_early"
	// Redirects sends everyone on to itself, a hundred times; whoever follows gets there what Good answers.
	Redirects Kind = "redirects"
)

// Those at https URLs that are not to be trusted, or fail to shake hands.
const (
	// WrongHost has a certificate for another host.
	WrongHost Kind = "tls_wrong_host"
	// Expired has a certificate that ended yesterday.
	Expired Kind = "tls_expired"
	// UnknownAuthority has a certificate that an authority signed which is not in Roots.
	UnknownAuthority Kind = "tls_unknown_authority"
	// OldTLS speaks no version later than TLS 1.1.
	OldTLS Kind = "tls_old"
	// PlainHTTP speaks HTTP without TLS.
	PlainHTTP Kind = "tls_plain_http"
	// ClosesHandshake reads the greeting and closes.
	ClosesHandshake Kind = "tls_closes_handshake"
	// HangsHandshake reads whatever comes and never writes.
	HangsHandshake Kind = "tls_hangs_handshake"
)

// All are the bad kinds: every one but Good and GoodTLS.
var All = []Kind{
	NeverAccepts, Refuses, NeverAnswers, HalfClosed,
	DripsHeader, DripsBody,
	GigabyteBody, EndlessBody, GzipBomb, HugeHeader, EndlessInterim,
	ResetsMidAnswer, ClosesMidAnswer,
	Garbage, NoHeader, PromisesMore, SendsMore, ClosesAfter, TwoLengths, AnswersEarly, Redirects,
	WrongHost, Expired, UnknownAuthority, OldTLS, PlainHTTP, ClosesHandshake, HangsHandshake,
}
