package badreceiver

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Gigabyte is 1 GiB, in bytes.
const Gigabyte = 1 << 30

// behaviour is the implementation of a Kind.
type behaviour struct {
	https bool
	needs func() error // called by Start; nil: nothing
	serve func(*conn)  // returns when the connection is to be closed; nil: none is accepted
}

const (
	okAnswer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
	halfBody = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" // and 500 bytes
	forged   = "HTTP/1.1 299 Forged\r\nContent-Length: 6\r\n\r\nforged"
)

// behaviours has the behaviour of each Kind.
var behaviours = map[Kind]behaviour{
	Good:      {serve: always(okAnswer)},
	GoodTLS:   {https: true, needs: makeCertificates, serve: secure(good, always(okAnswer))},
	GoodHTTP2: {https: true, needs: makeCertificates, serve: http2(goodHTTP2)},

	NeverAccepts: {},
	Refuses:      {},
	NeverAnswers: {serve: once((*conn).hold)},
	HalfClosed:   {serve: once(func(c *conn) { c.finish(); c.hold() })},
	NeverReads:   {serve: (*conn).wait},

	DripsHeader: {serve: once(after("HTTP/1.1 200 OK\r\nX-Drip: ", (*conn).drip))},
	DripsBody: {serve: once(after(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", Gigabyte),
		(*conn).drip))},
	ReadsSlowly: {serve: slowly},

	FullHeaderStalls: {serve: once(after(fullHeader, (*conn).hold))},
	FullBodyStalls: {serve: once(after(fullHeader+fmt.Sprintf("Content-Length: %d\r\n\r\n", Gigabyte),
		func(c *conn) { c.pour(body, 60<<10); c.hold() }))},
	InterimStalls: {serve: once(after(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n", 4),
		(*conn).hold))},
	ShortLines: {serve: once(after(shortLines, (*conn).hold))},
	LongLine:   {serve: once(after("HTTP/1.1 200 OK\r\nX-Long: "+string(body[:64<<10]), (*conn).hold))},

	GigabyteBody:   {serve: once(gigabyte)},
	EndlessBody:    {serve: once(after("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", pours(chunk)))},
	GzipBomb:       {needs: makeMember, serve: once(explode)},
	HugeHeader:     {serve: once(hugeHeader)},
	EndlessInterim: {serve: once(pours(interim))},
	EndlessTrailer: {serve: once(after("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: "+
		"X-Filler\r\n\r\n2\r\nok\r\n0\r\n",
		pours(header)))},
	EndlessExtension: {serve: once(after("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;", pours(body)))},
	TinyChunks:       {serve: once(after("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", pours(tinyChunks)))},

	ResetsMidAnswer: {serve: once(after(halfBody+strings.Repeat("x", 500), (*conn).reset))},
	ClosesMidAnswer: {serve: once(after(halfBody+strings.Repeat("x", 500), nil))},

	Garbage:      {serve: once(after(strings.Repeat("\x00\xff\x16\x03 no HTTP \x7f\x80\r\n", 30), nil))},
	NoHeader:     {serve: once(after("<html><body>ok</body></html>\r\n", nil))},
	PromisesMore: {serve: once(after(halfBody+strings.Repeat("x", 500), (*conn).hold))},
	SendsMore:    {serve: always(okAnswer + forged)},
	ClosesAfter:  {serve: once(after(okAnswer, nil))},
	TwoLengths:   {serve: once(after("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk", nil))},
	AnswersEarly: {serve: early},
	StatusZero:   {serve: always("HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n")},
	AnswersLate:  {serve: late},
	Redirects:    {serve: redirect},

	WrongHost:        {https: true, needs: makeCertificates, serve: secure(wrongHost, always(okAnswer))},
	Expired:          {https: true, needs: makeCertificates, serve: secure(expired, always(okAnswer))},
	UnknownAuthority: {https: true, needs: makeCertificates, serve: secure(unknown, always(okAnswer))},
	OldTLS:           {https: true, needs: makeCertificates, serve: secure(old, always(okAnswer))},
	PlainHTTP:        {https: true, serve: plain},
	ClosesHandshake:  {https: true, serve: func(c *conn) { c.greeting() }},
	HangsHandshake:   {https: true, serve: (*conn).hold},
	BigChain:         {https: true, needs: makeBigChain, serve: secure(tooMuch, always(okAnswer))},
	BigChainStalls:   {https: true, needs: makeBigChain, serve: stalls(200<<10, secure(tooMuch, always(okAnswer)))},
	FullChainStalls:  {https: true, needs: makeBigChain, serve: secure(much, once((*conn).hold))},
	BigTicket:        {https: true, needs: makeCertificates, serve: bigTicket},
	RecordStalls:     {https: true, needs: makeCertificates, serve: secure(good, once(recordStalls))},
	AnswersLateTLS:   {https: true, needs: makeCertificates, serve: secure(good, late)},

	HTTP2ShortFields:    {https: true, needs: makeCertificates, serve: http2(shortFields)},
	HTTP2HeaderStalls:   {https: true, needs: makeCertificates, serve: http2(headerStalls)},
	HTTP2HeaderBomb:     {https: true, needs: makeCertificates, serve: http2(headerBomb)},
	HTTP2EndlessHeader:  {https: true, needs: makeCertificates, serve: http2(endlessHeader)},
	HTTP2EndlessInterim: {https: true, needs: makeCertificates, serve: http2(endlessInterim)},
	HTTP2EndlessTrailer: {https: true, needs: makeCertificates, serve: http2(endlessTrailer)},
	HTTP2FullBodyStalls: {https: true, needs: makeCertificates, serve: http2(fullBody)},
	HTTP2StatusZero:     {https: true, needs: makeCertificates, serve: http2(statusZero)},
	HTTP2NeverAnswers:   {https: true, needs: makeCertificates, serve: http2(func(*h2conn, uint32) {})},
}

// always responds to every request with the same text.
func always(answer string) func(*conn) {
	return func(c *conn) {
		for c.request() != nil && c.say(answer) {
		}
	}
}

// once reads one request and calls do.
func once(do func(*conn)) func(*conn) {
	return func(c *conn) {
		if c.request() != nil {
			do(c)
		}
	}
}

// after writes a text, if not empty, before do.
func after(text string, do func(*conn)) func(*conn) {
	return func(c *conn) {
		if c.say(text) && do != nil {
			do(c)
		}
	}
}

// early responds after the first byte of a request.
func early(c *conn) {
	if n, _ := c.Read(make([]byte, 1)); n == 0 {
		return
	}
	c.r.requests.Add(1)
	c.say("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

// redirect redirects to a path with a counter.
func redirect(c *conn) {
	for req := c.request(); req != nil; req = c.request() {
		n, err := strconv.Atoi(strings.TrimPrefix(req.URL.Path, "/"))
		answer := okAnswer
		if err != nil || n < 100 {
			answer = fmt.Sprintf("HTTP/1.1 302 Found\r\nLocation: %s/%d\r\nContent-Length: 0\r\n\r\n", c.r.URL, n+1)
		}
		if !c.say(answer) {
			return
		}
	}
}

// late responds to each later request of a connection as if it were the first.
func late(c *conn) {
	first := c.request()
	for req := first; req != nil; req = c.request() {
		answer := okAnswer
		if req != first {
			id := first.Header.Get("Webhook-Id")
			answer = fmt.Sprintf("HTTP/1.1 299 Late\r\nContent-Length: %d\r\n\r\n%s", len(id), id)
		}
		if !c.say(answer) {
			return
		}
	}
}

// slowly reads a request two bytes at a time.
func slowly(c *conn) {
	tick := time.NewTicker(dripEvery)
	defer tick.Stop()
	c.in = bufio.NewReader(slowReader{c.Conn, tick.C, c.r.stop})
	always(okAnswer)(c)
}

// slowReader reads two bytes per tick.
type slowReader struct {
	io.Reader

	tick <-chan time.Time
	stop <-chan struct{}
}

func (r slowReader) Read(p []byte) (int, error) {
	select {
	case <-r.tick:
		return r.Reader.Read(p[:min(len(p), 2)])
	case <-r.stop:
		return 0, io.EOF
	}
}
