// This part of the package reads a stream of lines and writes results while it is read, with bounded memory and with
// deadlines for clients that send or read too slowly.
//
// A Reader splits the stream into lines. A resultBuffer keeps results until the client reads them, and has one
// goroutine, which ends with Stop. Deadlines bound both.

package api

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/internal/utf8text"
)

// A line is a line that is not blank.
type line struct {
	// N is its number in the stream, from 1, with blank lines.
	N int
	// Text is the line without surrounding white space, and without the byte order mark that it may begin with: in the
	// middle of a stream it is that of a file that was appended to another. It belongs to the caller.
	Text []byte
	// TooLong is set, and Text empty, when the line is longer than allowed.
	TooLong bool
}

// A reader splits a stream into groups of lines that arrived together. Its memory is bounded by the longest line.
type reader struct {
	r        io.Reader
	maxLine  int // bytes, without the newline
	reserved *limits.MeteredBody

	// buf holds the bytes read. Those before taken were returned or are not needed; those from taken to seen contain no
	// newline.
	buf         []byte
	taken, seen int
	readSize    int // bytes of the next buffer
	ended       int // lines ended so far
	skipping    bool
	err         error // the error of r
}

// Bounds of a buffer's size. It doubles while reads fill it, and bounds the bytes of a group of lines.
const (
	minRead = 16 << 10
	maxRead = 1 << 20
)

// newReader returns a Reader of lines of at most maxLine bytes. Its memory is reserved from a request's body.
func newReader(r io.Reader, maxLine int, reserved *limits.MeteredBody) *reader {
	return &reader{r: r, maxLine: maxLine, reserved: reserved}
}

// Lines returns the number of lines that have ended.
func (l *reader) Lines() int { return l.ended }

// Next returns at most most lines that have arrived. It blocks only for the first of them. The error is io.EOF after
// the last line, which needs no newline, else that of the reader. After such an error an incomplete last line is
// dropped, since it may look complete.
func (l *reader) Next(most int) ([]line, error) {
	for {
		group := l.arrived(nil, most)
		switch {
		case len(group) > 0:
			return group, nil
		case l.err != nil:
			if errors.Is(l.err, io.EOF) {
				group = l.last(group)
			}
			if len(group) > 0 {
				return group, nil
			}
			return nil, l.err
		}
		l.fill()
	}
}

// arrived appends complete lines to a group of at most most.
func (l *reader) arrived(group []line, most int) []line {
	for len(group) < most {
		end := bytes.IndexByte(l.buf[l.seen:], '\n')
		if end < 0 {
			l.seen = len(l.buf)
			return l.partly(group)
		}
		end += l.seen
		text := l.buf[l.taken:end:end]
		l.taken, l.seen = end+1, end+1
		l.ended++
		if l.skipping {
			l.skipping = false
			continue
		}
		group = l.add(group, l.ended, text)
	}
	return group
}

// partly reports an incomplete line that is already too long, and drops its rest.
func (l *reader) partly(group []line) []line {
	if !l.skipping && len(l.buf)-l.taken > l.maxLine {
		l.skipping = true
		group = append(group, line{N: l.ended + 1, TooLong: true})
	}
	if l.skipping {
		l.buf = l.buf[:l.taken]
		l.seen = l.taken
	}
	return group
}

// last appends the line that ended with the stream, if any.
func (l *reader) last(group []line) []line {
	text := l.buf[l.taken:]
	l.taken, l.seen = len(l.buf), len(l.buf)
	if len(text) == 0 || l.skipping {
		return group
	}
	l.ended++
	return l.add(group, l.ended, text)
}

// add appends a line unless it is blank.
func (l *reader) add(group []line, n int, text []byte) []line {
	if len(text) > l.maxLine {
		return append(group, line{N: n, TooLong: true})
	}
	text, _ = utf8text.Trim(text) // whoever parses the line refuses UTF-16
	if text = bytes.Trim(text, " \t\r"); len(text) == 0 {
		return group
	}
	return append(group, line{N: n, Text: slices.Clip(text)})
}

// fill reads once.
func (l *reader) fill() {
	if !l.makeRoom() {
		l.err = errNoMemory
		return
	}
	free := l.buf[len(l.buf):cap(l.buf)]
	n, err := l.r.Read(free)
	l.buf = l.buf[:len(l.buf)+n]
	l.err = err
	if n == len(free) {
		l.readSize = min(2*l.readSize, maxRead)
	}
}

// errNoMemory means that the process has no memory left for a long line.
var errNoMemory = errors.New("no memory for the line")

// makeRoom makes room for the next read. It reports false when the process has no memory for it. Returned lines are
// never moved: a registration may read them after its deadline. The rest moves to a new buffer.
func (l *reader) makeRoom() bool {
	l.readSize = max(l.readSize, minRead)
	if cap(l.buf)-len(l.buf) >= minRead/4 {
		return true
	}
	rest := l.buf[l.taken:]
	// For a long line the size doubles, so that its bytes are copied at most twice on average.
	size := len(rest) + max(l.readSize, min(len(rest), l.maxLine+1-len(rest)+minRead))
	if !l.reserve(size) {
		size = len(rest) + minRead
		if !l.reserve(size) {
			return false
		}
	}
	fresh := make([]byte, len(rest), size)
	copy(fresh, rest)
	l.buf = fresh
	l.seen -= l.taken
	l.taken = 0
	return true
}

// reserve replaces the reservation of the buffer. Small buffers are always granted, so that streams of short lines
// continue.
func (l *reader) reserve(size int) bool {
	switch {
	case size <= capacity.SmallBody:
		l.reserved.ForceReserve(int64(size))
	case l.reserved.Reserve(int64(size)) != nil:
		return false
	}
	l.reserved.Return(int64(cap(l.buf)))
	return true
}

// Partial returns the number of the current line, and whether any of it has arrived.
func (l *reader) Partial() (n int, ok bool) {
	return l.ended + 1, l.skipping || len(bytes.Trim(l.buf[l.taken:], " \t\r")) > 0
}
