package badreceiver

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Blocks shared by all receivers, read-only.
var (
	body    = bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	chunk   = fmt.Appendf(nil, "%x\r\n%s\r\n", len(body), body)
	header  = []byte(strings.Repeat("X-Filler: "+strings.Repeat("x", 52)+"\r\n", 1<<10))
	interim = []byte(strings.Repeat("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: "+
		"</style.css>\r\n\r\n", 512))
)

// FullHeader and FullHeaderLines are the bytes and lines of header that FullHeaderStalls and FullBodyStalls send,
// without the status line: just below a limit of 16 KiB or 100 lines.
const (
	FullHeader      = 15 << 10
	FullHeaderLines = 96
)

var (
	fullHeader = "HTTP/1.1 200 OK\r\n" + lines(FullHeaderLines, FullHeader/FullHeaderLines)
	shortLines = "HTTP/1.1 200 OK\r\n" + lines((60<<10)/7, 7)
	tinyChunks = []byte(strings.Repeat("1\r\nx\r\n", 8<<10))
)

// lines returns header lines of equal size with different names.
func lines(count, size int) string {
	var b strings.Builder
	for n := range count {
		name := "x" + strconv.FormatInt(int64(n)+36, 36) // from x10 on
		fmt.Fprintf(&b, "%s:%s\r\n", name, strings.Repeat("v", max(0, size-len(name)-3)))
	}
	return b.String()
}

// The gzip bomb repeats one member of a gzip file.
const (
	unpacked = 8 << 20 // bytes of zeros in a member
	members  = Gigabyte / unpacked
)

// member is one member of the bomb, about 8 KiB.
var member = sync.OnceValues(func() ([]byte, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	zeros := make([]byte, 64<<10)
	for range unpacked / len(zeros) {
		if _, err := w.Write(zeros); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
})

// makeMember compresses the member before the receiver starts.
func makeMember() error {
	_, err := member()
	return err
}

// pours returns a behaviour that repeats a block.
func pours(block []byte) func(*conn) {
	return func(c *conn) { c.forever(block) }
}

// gigabyte sends the announced body of Gigabyte bytes.
func gigabyte(c *conn) {
	if c.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", Gigabyte)) && c.pour(body, Gigabyte) {
		c.hold()
	}
}

// hugeHeader sends a header that is correct except for its size.
func hugeHeader(c *conn) {
	if c.say("HTTP/1.1 200 OK\r\n") && c.pour(header, 100<<20) && c.say("Content-Length: 0\r\n\r\n") {
		c.hold()
	}
}

// explode sends the gzip bomb.
func explode(c *conn) {
	piece, err := member()
	if err != nil {
		return // Start has reported it
	}
	size := int64(len(piece)) * members
	if c.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", size)) &&
		c.pour(piece, size) {
		c.hold()
	}
}
