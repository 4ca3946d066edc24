package badreceiver

import (
	"fmt"
	"strconv"
	"strings"
)

// Gigabyte is 1 GiB, in bytes.
const Gigabyte = 1 << 30

// A behaviour is what a kind does to a connection.
type behaviour struct {
	https bool
	needs func() error // what must be there before it starts; nil: nothing
	serve func(*conn)  // returns when the connection is to be closed; nil: none is accepted
}

const (
	okAnswer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
	halfBody = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" // and 500 bytes
	forged   = "HTTP/1.1 299 Forged\r\nContent-Length: 6\r\n\r\nforged"
)

// behaviours are those of all kinds.
var behaviours = map[Kind]behaviour{
	Good:    {serve: always(okAnswer)},
	GoodTLS: {https: true, needs: makeCertificates, serve: secure(good)},

	NeverAccepts: {},
	Refuses:      {},
	NeverAnswers: {serve: once((*conn).hold)},
	HalfClosed:   {serve: once(func(c *conn) { c.finish(); c.hold() })},

	DripsHeader: {serve: once(after("HTTP/1.1 200 OK\r\nX-Drip: ", (*conn).drip))},
	DripsBody:   {serve: once(after(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", Gigabyte), (*conn).drip))},

	GigabyteBody:   {serve: once(gigabyte)},
	EndlessBody:    {serve: once(after("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", pours(chunk)))},
	GzipBomb:       {needs: makeMember, serve: once(explode)},
	HugeHeader:     {serve: once(hugeHeader)},
	EndlessInterim: {serve: once(pours(interim))},

	ResetsMidAnswer: {serve: once(after(halfBody+strings.Repeat("x", 500), (*conn).reset))},
	ClosesMidAnswer: {serve: once(after(halfBody+strings.Repeat("x", 500), nil))},

	Garbage:      {serve: once(after(strings.Repeat("\x00\xff\x16\x03 no HTTP \x7f\x80\r\n", 30), nil))},
	NoHeader:     {serve: once(after("<html><body>ok</body></html>\r\n", nil))},
	PromisesMore: {serve: once(after(halfBody+strings.Repeat("x", 500), (*conn).hold))},
	SendsMore:    {serve: always(okAnswer + forged)},
	ClosesAfter:  {serve: once(after(okAnswer, nil))},
	TwoLengths:   {serve: once(after("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk", nil))},
	AnswersEarly: {serve: early},
	Redirects:    {serve: redirect},

	WrongHost:        {https: true, needs: makeCertificates, serve: secure(wrongHost)},
	Expired:          {https: true, needs: makeCertificates, serve: secure(expired)},
	UnknownAuthority: {https: true, needs: makeCertificates, serve: secure(unknown)},
	OldTLS:           {https: true, needs: makeCertificates, serve: secure(old)},
	PlainHTTP:        {https: true, serve: plain},
	ClosesHandshake:  {https: true, serve: func(c *conn) { c.greeting() }},
	HangsHandshake:   {https: true, serve: (*conn).hold},
}

// always answers every request with the same text.
func always(answer string) func(*conn) {
	return func(c *conn) {
		for c.request() != nil && c.say(answer) {
		}
	}
}

// once reads one request, and answers it with do.
func once(do func(*conn)) func(*conn) {
	return func(c *conn) {
		if c.request() != nil {
			do(c)
		}
	}
}

// after says a text before do, if there is one.
func after(text string, do func(*conn)) func(*conn) {
	return func(c *conn) {
		if c.say(text) && do != nil {
			do(c)
		}
	}
}

// early answers a request of which it has read a byte.
func early(c *conn) {
	if n, _ := c.Read(make([]byte, 1)); n == 0 {
		return
	}
	c.r.requests.Add(1)
	c.say("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

// redirect sends everyone on, to a path that counts.
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
