package api

import (
	"bytes"
	"errors"
	"io"
)

// A line is one that is not blank.
type line struct {
	// n is its place in the stream, from 1, blank lines counted.
	n int
	// text is it without white space around it. It is the caller's to keep: nothing is written over it.
	text []byte
	// long says that it is longer than lines may be. It has no text then.
	long bool
}

// lines takes a stream apart into lines that arrived together. Its memory is bounded by the longest line, whatever
// comes.
type lines struct {
	from    io.Reader
	longest int // B, without the newline
	held    *meteredBody

	// buf is what arrived. Up to taken it was given out or is not needed; from there to seen it holds no newline.
	buf         []byte
	taken, seen int
	room        int  // B to read into next time
	n           int  // lines that ended so far
	begun       bool // as many B arrived as byteOrderMark has
	skipping    bool
	err         error // of from, once it failed
}

// Room to read into: it grows while the stream fills it, and that bounds the text that arrives together.
const (
	leastRoom = 16 << 10
	mostRoom  = 1 << 20
)

// byteOrderMark begins what some editors write as UTF-8. A reader of JSON may ignore it (RFC 8259, 8.1).
const byteOrderMark = "\xef\xbb\xbf"

// next gives lines that have arrived, at most most, and waits only for the first of them. The error is from's: io.EOF
// after the last line, which needs no newline. After any other error what stands behind the last newline is not given:
// a line that is cut off may read like a whole one.
func (l *lines) next(most int) ([]line, error) {
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
func (l *lines) arrived(group []line, most int) []line {
	for len(group) < most {
		end := bytes.IndexByte(l.buf[l.seen:], '\n')
		if end < 0 {
			l.seen = len(l.buf)
			return l.partly(group)
		}
		end += l.seen
		text := l.buf[l.taken:end:end]
		l.taken, l.seen = end+1, end+1
		l.n++
		if l.skipping {
			l.skipping = false
			continue
		}
		group = l.add(group, l.n, text)
	}
	return group
}

// partly looks at a line that has not ended: when it is too long already, that is said at once, and the rest of it is
// not kept.
func (l *lines) partly(group []line) []line {
	if !l.skipping && len(l.buf)-l.taken > l.longest {
		l.skipping = true
		group = append(group, line{n: l.n + 1, long: true})
	}
	if l.skipping {
		l.buf = l.buf[:l.taken]
		l.seen = l.taken
	}
	return group
}

// last adds the line that the stream's end ended, if there is any.
func (l *lines) last(group []line) []line {
	text := l.buf[l.taken:]
	l.taken, l.seen = len(l.buf), len(l.buf)
	if len(text) == 0 || l.skipping {
		return group
	}
	l.n++
	return l.add(group, l.n, text)
}

// add adds a line to a group unless it is blank.
func (l *lines) add(group []line, n int, text []byte) []line {
	if len(text) > l.longest {
		return append(group, line{n: n, long: true})
	}
	if text = bytes.Trim(text, " \t\r"); len(text) == 0 {
		return group
	}
	return append(group, line{n: n, text: text[:len(text):len(text)]})
}

// fill reads once.
func (l *lines) fill() {
	if !l.makeRoom() {
		l.err = errNoRoom
		return
	}
	free := l.buf[len(l.buf):cap(l.buf)]
	n, err := l.from.Read(free)
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
		l.room = min(2*l.room, mostRoom)
	}
}

// errNoRoom: a line is too long for what the process has room for now.
var errNoRoom = errors.New("there is no room for the line")

// makeRoom sees to it that there is some to read into; false: the process has none. What was given out keeps its place, since who registers a job
// may look at it even after it was told that the time is up; so the rest moves on to a buffer of its own.
func (l *lines) makeRoom() bool {
	l.room = max(l.room, leastRoom)
	if cap(l.buf)-len(l.buf) >= leastRoom/4 {
		return true
	}
	rest := l.buf[l.taken:]
	// A line longer than the room doubles it each time, so that it is not copied more than twice over.
	size := len(rest) + max(l.room, min(len(rest), l.longest+1-len(rest)+leastRoom))
	if !l.reserve(size) {
		size = len(rest) + leastRoom
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
func (l *lines) reserve(size int) bool {
	switch {
	case size <= smallBody:
		l.held.force(int64(size))
	case !l.held.take(int64(size)):
		return false
	}
	l.held.give(int64(cap(l.buf)))
	return true
}

// halfway tells whether a line began that has not ended, and which.
func (l *lines) halfway() (n int, ok bool) {
	return l.n + 1, l.skipping || len(bytes.Trim(l.buf[l.taken:], " \t\r")) > 0
}
