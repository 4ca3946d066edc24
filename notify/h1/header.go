package h1

import (
	"bytes"
	"errors"
)

// Limits of a response's header with its interim responses (1xx), in bytes and fields. Over HTTP/2 each field counts 32
// more bytes (RFC 9113 §6.5.2), and interim responses have a separate limit of half as much again.
const (
	MaxHeader      = 16 << 10
	MaxHeaderLines = 100
)

// ErrHeaderTooLarge is the error of a response whose header is beyond MaxHeader or MaxHeaderLines.
var ErrHeaderTooLarge = errors.New("the header of the answer is too large")

// A HeaderLimit bounds the header of an HTTP/1 response, with its interim responses, while it is read: many short lines
// take about sixteen times their size in memory when parsed. The zero value is at the start of a response.
type HeaderLimit struct {
	done  bool  // the final response's header has ended: what follows is a body
	err   error // ErrHeaderTooLarge
	bytes int
	lines int // fields, without the status line and the empty line

	length  int     // of the line so far
	first   byte    // of the line
	fields  bool    // the status line is over
	spaced  bool    // the space after the version has come
	digits  int     // of the status, that have come
	status  [3]byte // the status, as far as it has come
	interim bool
}

// Err returns the error of Read, if any.
func (h *HeaderLimit) Err() error { return h.err }

// Read counts bytes of the response and fails with ErrHeaderTooLarge. Later calls fail again, because net/http loses
// errors of its read-ahead.
func (h *HeaderLimit) Read(p []byte) error {
	for len(p) > 0 && !h.done && h.err == nil {
		line, ended := p, false
		if end := bytes.IndexByte(p, '\n'); end >= 0 {
			line, ended = p[:end+1], true
		}
		p = p[len(line):]
		if h.bytes += len(line); h.bytes > MaxHeader {
			h.err = ErrHeaderTooLarge
		}
		if h.length == 0 {
			h.first = line[0]
		}
		h.length += len(line)
		if !h.fields {
			h.readStatus(line)
		}
		if ended {
			h.endLine()
		}
	}
	return h.err
}

// readStatus finds the status in a part of the status line as net/http's ReadResponse does: after the first run of
// spaces.
func (h *HeaderLimit) readStatus(part []byte) {
	if !h.spaced {
		space := bytes.IndexByte(part, ' ')
		if space < 0 {
			return
		}
		h.spaced = true
		part = part[space:]
	}
	for _, c := range part {
		if h.digits == len(h.status) || c == ' ' && h.digits > 0 {
			return
		}
		if c != ' ' {
			h.status[h.digits] = c
			h.digits++
		}
	}
}

// endLine handles the end of a line.
func (h *HeaderLimit) endLine() {
	empty := h.length == 1 || h.length == 2 && h.first == '\r'
	h.length = 0
	switch {
	case !h.fields:
		h.fields = true
		h.interim = h.status[0] == '1' && string(h.status[:]) != "101"
	case !empty:
		if h.lines++; h.lines > MaxHeaderLines {
			h.err = ErrHeaderTooLarge
		}
	case h.interim:
		*h = HeaderLimit{err: h.err, bytes: h.bytes, lines: h.lines}
	default:
		h.done = true
	}
}
