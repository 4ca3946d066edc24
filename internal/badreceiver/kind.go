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
	// NeverReads accepts connections, reads nothing of a request and never writes.
	NeverReads Kind = "never_reads"
)

// Those that are slow.
const (
	// DripsHeader sends a header byte by byte, for ever.
	DripsHeader Kind = "drips_header"
	// DripsBody sends a good header at once, then a body byte by byte, for ever.
	DripsBody Kind = "drips_body"
	// ReadsSlowly reads the request a few bytes at a time, and answers as Good does when it has all of it.
	ReadsSlowly Kind = "reads_slowly"
)

// Those that send as much as costs the sender memory, and then wait with the connection open.
const (
	// FullHeaderStalls sends a header of FullHeader bytes in FullHeaderLines lines, but not the empty line that ends it.
	FullHeaderStalls Kind = "full_header_stalls"
	// FullBodyStalls sends a header of that size and 60 KiB of a body that it announces to be longer.
	FullBodyStalls Kind = "full_body_stalls"
	// InterimStalls sends four interim answers, and no final one.
	InterimStalls Kind = "interim_stalls"
	// ShortLines sends 60 KiB of header in lines of seven bytes.
	ShortLines Kind = "short_lines"
	// LongLine sends 64 KiB of header in a single line without an end.
	LongLine Kind = "long_line"
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
	// EndlessTrailer sends a body in chunks, and trailer fields for ever.
	EndlessTrailer Kind = "endless_trailer"
	// EndlessExtension sends a chunk whose extension never ends.
	EndlessExtension Kind = "endless_extension"
	// TinyChunks sends chunks of one byte for ever.
	TinyChunks Kind = "tiny_chunks"
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
	// StatusZero answers with the status 000, which HTTP does not have.
	StatusZero Kind = "status_zero"
	// AnswersLate answers the first request of a connection as Good does, and each later one with a status of 299 and the
	// Webhook-Id of the connection's first request: as if that had been answered a second time, late.
	AnswersLate Kind = "answers_late"
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
	// BigChain shows a good certificate, and 200 KiB of others after it.
	BigChain Kind = "tls_big_chain"
	// BigChainStalls is BigChain, and stops sending 16 KiB before the end of them.
	BigChainStalls Kind = "tls_big_chain_stalls"
	// FullChainStalls shows a good certificate and others after it, FullChain in all and each time different ones. It reads
	// the request and never answers.
	FullChainStalls Kind = "tls_full_chain_stalls"
	// BigTicket is GoodTLS until it has read the request. It then sends most of a session ticket of 60 KiB.
	BigTicket Kind = "tls_big_ticket_stalls"
	// RecordStalls is GoodTLS until it has read the request. It then sends most of a record of 16 KiB.
	RecordStalls Kind = "tls_record_stalls"
	// AnswersLateTLS is AnswersLate over TLS.
	AnswersLateTLS Kind = "tls_answers_late"
)

// Those that speak HTTP/2. Where a header has no end, other requests on the connection wait with the first.
const (
	// GoodHTTP2 answers 200 and "ok". It is not bad.
	GoodHTTP2 Kind = "http2_good"
	// HTTP2ShortFields sends 1500 fields of seven bytes, and no end of the header.
	HTTP2ShortFields Kind = "http2_short_fields"
	// HTTP2HeaderStalls sends a header of FullHeader bytes by HTTP/2's count, and no end of it.
	HTTP2HeaderStalls Kind = "http2_full_header_stalls"
	// HTTP2HeaderBomb sends a header of 16 KiB that unpacks to 50 MiB.
	HTTP2HeaderBomb Kind = "http2_header_bomb"
	// HTTP2EndlessHeader sends CONTINUATION frames for ever.
	HTTP2EndlessHeader Kind = "http2_endless_header"
	// HTTP2EndlessInterim sends 103 Early Hints for ever.
	HTTP2EndlessInterim Kind = "http2_endless_interim"
	// HTTP2EndlessTrailer sends a header, a body and trailer fields for ever.
	HTTP2EndlessTrailer Kind = "http2_endless_trailer"
	// HTTP2FullBodyStalls sends a header of that size and 60 KiB of a body, if it may, and no end of it.
	HTTP2FullBodyStalls Kind = "http2_full_body_stalls"
	// HTTP2StatusZero answers with the status 000.
	HTTP2StatusZero Kind = "http2_status_zero"
	// HTTP2NeverAnswers shakes hands, and never answers a request.
	HTTP2NeverAnswers Kind = "http2_never_answers"
)

// All are the bad kinds: every one but those that are called good.
var All = []Kind{
	NeverAccepts, Refuses, NeverAnswers, HalfClosed, NeverReads,
	DripsHeader, DripsBody, ReadsSlowly,
	FullHeaderStalls, FullBodyStalls, InterimStalls, ShortLines, LongLine,
	GigabyteBody, EndlessBody, GzipBomb, HugeHeader, EndlessInterim, EndlessTrailer, EndlessExtension, TinyChunks,
	ResetsMidAnswer, ClosesMidAnswer,
	Garbage, NoHeader, PromisesMore, SendsMore, ClosesAfter, TwoLengths, AnswersEarly, StatusZero, AnswersLate, Redirects,
	WrongHost, Expired, UnknownAuthority, OldTLS, PlainHTTP, ClosesHandshake, HangsHandshake,
	BigChain, BigChainStalls, FullChainStalls, BigTicket, RecordStalls, AnswersLateTLS,
	HTTP2ShortFields, HTTP2HeaderStalls, HTTP2HeaderBomb, HTTP2EndlessHeader, HTTP2EndlessInterim, HTTP2EndlessTrailer,
	HTTP2FullBodyStalls, HTTP2StatusZero, HTTP2NeverAnswers,
}
