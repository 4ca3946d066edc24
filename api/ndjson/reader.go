package ndjson

import (
	"bytes"
	"errors"
	"io"

	"github.com/ringback/ringback/api/request"
)

// A Line is one that is not blank.
type Line struct {
	// N is its place in the stream, from 1, blank lines counted.
	N int
	// Text is it without white space around it. It is the caller's to keep: nothing is written over it.
	Text []byte
	// TooLong says that it is longer than lines may be. It has no text then.
	TooLong bool
}

// Reader takes a stream apart into lines that arrived together. Its memory is bounded by the longest line, whatever
// comes.
type Reader struct {
	r        io.Reader
	maxLine  int // B, without the newline
	reserved *request.MeteredBody

	// buf is what arrived. Up to taken it was given out or is not needed; from there to seen it holds no newline.
	buf         []byte
	taken, seen int
	readSize    int  // B to read into next time
	ended       int  // Reader that ended so far
	begun       bool // as many B arrived as byteOrderMark has
	skipping    bool
	err         error // of from, once it failed
}

// Room to read into: it grows while the stream fills it, and that bounds the text that arrives together.
const (
	minRead = 16 << 10
	maxRead = 1 << 20
)

// byteOrderMark begins what some editors write as UTF-8. A reader of JSON may ignore it (RFC 8259, 8.1).
const byteOrderMark = "\xef\xbb\xbf"

// NewReader returns a reader of lines of at most maxLine bytes. What it keeps in memory is reserved from a request's body.
func NewReader(r io.Reader, maxLine int, reserved *request.MeteredBody) *Reader {
	return &Reader{r: r, maxLine: maxLine, reserved: reserved}
}

// Lines is how many lines have ended.
func (l *Reader) Lines() int { return l.ended }

// Next gives lines that have arrived, at most most, and waits only for the first of them. The error is from's: io.EOF
// after the last line, which needs no newline. After any other error what stands behind the last newline is not given:
// a line that is cut off may read like a whole one.
func (l *Reader) Next(most int) ([]Line, error) {
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

// arrived adds the lines that have arrived to a group, until it has most.
func (l *Reader) arrived(group []Line, most int) []Line {
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

// partly looks at a line that has not ended: when it is too long already, that is said at once, and the rest of it is
// not kept.
func (l *Reader) partly(group []Line) []Line {
	if !l.skipping && len(l.buf)-l.taken > l.maxLine {
		l.skipping = true
		group = append(group, Line{N: l.ended + 1, TooLong: true})
	}
	if l.skipping {
		l.buf = l.buf[:l.taken]
		l.seen = l.taken
	}
	return group
}

// last adds the line that the stream's end ended, if there is any.
func (l *Reader) last(group []Line) []Line {
	text := l.buf[l.taken:]
	l.taken, l.seen = len(l.buf), len(l.buf)
	if len(text) == 0 || l.skipping {
		return group
	}
	l.ended++
	return l.add(group, l.ended, text)
}

// add adds a line to a group unless it is blank.
func (l *Reader) add(group []Line, n int, text []byte) []Line {
	if len(text) > l.maxLine {
		return append(group, Line{N: n, TooLong: true})
	}
	if text = bytes.Trim(text, " \t\r"); len(text) == 0 {
		return group
	}
	return append(group, Line{N: n, Text: text[:len(text):len(text)]})
}

// fill reads once.
func (l *Reader) fill() {
	if !l.makeRoom() {
		l.err = errNoMemory
		return
	}
	free := l.buf[len(l.buf):cap(l.buf)]
	n, err := l.r.Read(free)
	l.buf = l.buf[:len(l.buf)+n]
	l.err = err
	// The buffer is still the first one here: it has room for more than this.
	if !l.begun && len(l.buf) >= len(byteOrderMark) {
		l.begun = true
		if string(l.buf[:len(byteOrderMark)]) == byteOrderMark {
			l.taken, l.seen = len(byteOrderMark), len(byteOrderMark)
		}
	}
	if n == len(free) {
		l.readSize = min(2*l.readSize, maxRead)
	}
}

// errNoMemory: a line is too long for what the process has room for now.
var errNoMemory = errors.New("there is no room for the line")

// makeRoom sees to it that there is some to read into; false: the process has none. What was given out keeps its place, since who registers a job
// may look at it even after it was told that the time is up; so the rest moves on to a buffer of its own.
func (l *Reader) makeRoom() bool {
	l.readSize = max(l.readSize, minRead)
	if cap(l.buf)-len(l.buf) >= minRead/4 {
		return true
	}
	rest := l.buf[l.taken:]
	// A line longer than the room doubles it each time, so that it is not copied more than twice over.
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

// reserve takes the place of what is reserved for the buffer. A small one is always to be had, so that every stream goes
// on whose lines are no longer than that.
func (l *Reader) reserve(size int) bool {
	switch {
	case size <= request.SmallBody:
		l.reserved.ForceReserve(int64(size))
	case !l.reserved.Reserve(int64(size)):
		return false
	}
	l.reserved.Return(int64(cap(l.buf)))
	return true
}

// Partial tells whether a line began that has not ended, and which.
func (l *Reader) Partial() (n int, ok bool) {
	return l.ended + 1, l.skipping || len(bytes.Trim(l.buf[l.taken:], " \t\r")) > 0
}
