package badreceiver

// A Kind is the way in which a receiver is bad. Its text can be a test name.
type Kind string

// Good receivers, for comparison.
const (
	// Good answers 200 and "ok" to every request.
	Good Kind = "good"
	// GoodTLS is Good over TLS, with a certificate that Roots trusts.
	GoodTLS Kind = "good_tls"
)

// Receivers that do not respond. Unless stated otherwise, kinds read the whole request first.
const (
	// NeverAccepts listens with a full accept queue: a connect hangs.
	NeverAccepts Kind = "never_accepts"
	// Refuses has no listener.
	Refuses Kind = "refuses"
	// NeverAnswers reads everything and never writes.
	NeverAnswers Kind = "never_answers"
	// HalfClosed closes its write side instead of responding.
	HalfClosed Kind = "half_closed"
	// NeverReads accepts connections and neither reads nor writes.
	NeverReads Kind = "never_reads"
)

// Slow receivers.
const (
	// DripsHeader sends a header byte by byte, for ever.
	DripsHeader Kind = "drips_header"
	// DripsBody sends a good header at once, then a body byte by byte, for ever.
	DripsBody Kind = "drips_body"
	// ReadsSlowly reads the request a few bytes at a time, then responds as Good does.
	ReadsSlowly Kind = "reads_slowly"
)

// Receivers that make the sender buffer as much as possible, and then keep the connection open.
const (
	// FullHeaderStalls sends a header of FullHeader bytes in FullHeaderLines lines, but not the empty line that ends
	// it.
	FullHeaderStalls Kind = "full_header_stalls"
	// FullBodyStalls sends a header of that size and 60 KiB of a longer body.
	FullBodyStalls Kind = "full_body_stalls"
	// InterimStalls sends four interim responses and no final one.
	InterimStalls Kind = "interim_stalls"
	// ShortLines sends 60 KiB of header in lines of seven bytes.
	ShortLines Kind = "short_lines"
	// LongLine sends 64 KiB of header in a single line without an end.
	LongLine Kind = "long_line"
)

// Receivers that send too much, at full speed.
const (
	// GigabyteBody announces and sends a body of Gigabyte bytes.
	GigabyteBody Kind = "gigabyte_body"
	// EndlessBody sends chunks for ever.
	EndlessBody Kind = "endless_body"
	// GzipBomb sends about 1 MB of gzip that unpacks to Gigabyte bytes, whatever the request accepts.
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

// Receivers that end the connection in the middle of a body.
const (
	// ResetsMidAnswer sends a TCP reset.
	ResetsMidAnswer Kind = "resets_mid_answer"
	// ClosesMidAnswer closes the connection.
	ClosesMidAnswer Kind = "closes_mid_answer"
)

// Receivers that violate HTTP.
const (
	// Garbage sends lines that are not HTTP.
	Garbage Kind = "garbage"
	// NoHeader responds as HTTP/0.9 did: a body without a header.
	NoHeader Kind = "no_header"
	// PromisesMore sends less of a body than it announced, and keeps the connection open.
	PromisesMore Kind = "promises_more"
	// SendsMore sends the announced body "ok", followed by what looks like the response to another request: 299 and
	// "forged".
	SendsMore Kind = "sends_more"
	// ClosesAfter responds as Good does, without Connection: close, and closes the connection.
	ClosesAfter Kind = "closes_after_answer"
	// TwoLengths announces two different lengths of one body.
	TwoLengths Kind = "two_lengths"
	// AnswersEarly answers 413 after the first byte of a request and closes without reading the rest, which resets the
	// connection. Only requests of a few KiB are sure to see the response.
	AnswersEarly Kind = "answers_early"
	// StatusZero answers with the status 000, which HTTP does not have.
	StatusZero Kind = "status_zero"
	// AnswersLate answers the first request of a connection as Good does, and each later one with status 299 and the
	// Webhook-Id of the first, like a late second response to the first request.
	AnswersLate Kind = "answers_late"
	// Redirects redirects to itself a hundred times; then it responds as Good does.
	Redirects Kind = "redirects"
)

// Receivers over TLS with untrusted certificates or failing handshakes.
const (
	// WrongHost has a certificate for another host.
	WrongHost Kind = "tls_wrong_host"
	// Expired has a certificate that expired yesterday.
	Expired Kind = "tls_expired"
	// UnknownAuthority has a certificate of an authority that is not in Roots.
	UnknownAuthority Kind = "tls_unknown_authority"
	// OldTLS speaks no version later than TLS 1.1.
	OldTLS Kind = "tls_old"
	// PlainHTTP speaks HTTP without TLS.
	PlainHTTP Kind = "tls_plain_http"
	// ClosesHandshake reads the ClientHello and closes.
	ClosesHandshake Kind = "tls_closes_handshake"
	// HangsHandshake reads everything and never writes.
	HangsHandshake Kind = "tls_hangs_handshake"
	// BigChain shows a good certificate, and 200 KiB of others after it.
	BigChain Kind = "tls_big_chain"
	// BigChainStalls is BigChain, and stops sending 16 KiB before the end of them.
	BigChainStalls Kind = "tls_big_chain_stalls"
	// FullChainStalls shows a good certificate and others after it, FullChain in all and each time different ones. It
	// reads the request and never answers.
	FullChainStalls Kind = "tls_full_chain_stalls"
	// BigTicket is GoodTLS until it has read the request. It then sends most of a session ticket of 60 KiB.
	BigTicket Kind = "tls_big_ticket_stalls"
	// RecordStalls is GoodTLS until it has read the request. It then sends most of a record of 16 KiB.
	RecordStalls Kind = "tls_record_stalls"
	// AnswersLateTLS is AnswersLate over TLS.
	AnswersLateTLS Kind = "tls_answers_late"
)

// Receivers that speak HTTP/2. An unfinished header blocks the other requests on its connection.
const (
	// GoodHTTP2 answers 200 and "ok", for comparison.
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
	// HTTP2FullBodyStalls sends a header of that size and 60 KiB of an unfinished body, as far as the window allows.
	HTTP2FullBodyStalls Kind = "http2_full_body_stalls"
	// HTTP2StatusZero answers with the status 000.
	HTTP2StatusZero Kind = "http2_status_zero"
	// HTTP2NeverAnswers completes the handshake and never responds.
	HTTP2NeverAnswers Kind = "http2_never_answers"
)

// All returns every kind that is not good.
var All = []Kind{
	NeverAccepts, Refuses, NeverAnswers, HalfClosed, NeverReads,
	DripsHeader, DripsBody, ReadsSlowly,
	FullHeaderStalls, FullBodyStalls, InterimStalls, ShortLines, LongLine,
	GigabyteBody, EndlessBody, GzipBomb, HugeHeader, EndlessInterim, EndlessTrailer, EndlessExtension, TinyChunks,
	ResetsMidAnswer, ClosesMidAnswer,
	Garbage, NoHeader, PromisesMore, SendsMore, ClosesAfter, TwoLengths, AnswersEarly, StatusZero, AnswersLate,
	Redirects, WrongHost, Expired, UnknownAuthority, OldTLS, PlainHTTP, ClosesHandshake, HangsHandshake,
	BigChain, BigChainStalls, FullChainStalls, BigTicket, RecordStalls, AnswersLateTLS,
	HTTP2ShortFields, HTTP2HeaderStalls, HTTP2HeaderBomb, HTTP2EndlessHeader, HTTP2EndlessInterim, HTTP2EndlessTrailer,
	HTTP2FullBodyStalls, HTTP2StatusZero, HTTP2NeverAnswers,
}
