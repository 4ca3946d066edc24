package badreceiver

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Constants of HTTP/2 (RFC 9113).
const (
	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

	frameData         = 0x0
	frameHeaders      = 0x1
	frameSettings     = 0x4
	framePing         = 0x6
	frameWindowUpdate = 0x8
	frameContinuation = 0x9

	flagAck        = 0x1
	flagEndStream  = 0x1
	flagEndHeaders = 0x4

	settingInitialWindow = 0x4

	maxFrame = 16 << 10
)

// h2conn is an HTTP/2 connection.
type h2conn struct {
	*conn

	window       int // of the connection, in bytes
	streamWindow int
	unfinished   bool // inside a header: no other frame is allowed
}

// http2 calls a function for the header of each request. It discards request bodies.
func http2(answer func(*h2conn, uint32)) func(*conn) {
	return func(c *conn) {
		certs, err := certificates()
		if err != nil {
			return // Start has reported it
		}
		config := present(certs.good)
		config.NextProtos = []string{"h2"}
		secured := tls.Server(c.Conn, config)
		if secured.HandshakeContext(context.Background()) != nil { // ends with its connection at the latest
			return
		}
		h := &h2conn{conn: c.over(secured), window: 65535, streamWindow: 65535}
		h.serve(answer)
	}
}

// serve reads frames until the connection ends.
func (h *h2conn) serve(answer func(*h2conn, uint32)) {
	if _, err := io.ReadFull(h.in, make([]byte, len(preface))); err != nil {
		return
	}
	if !h.frame(frameSettings, 0, 0, nil) {
		return
	}
	answered := int64(0)
	defer func() { h.r.held.Add(-answered) }()
	for {
		kind, flags, stream, payload, err := h.next()
		if err != nil {
			return
		}
		switch {
		case kind == frameHeaders:
			h.r.requests.Add(1)
			if !h.unfinished {
				answer(h, stream)
			}
			h.r.held.Add(1)
			answered++
		case kind == frameSettings && flags&flagAck == 0:
			h.settings(payload)
			h.reply(frameSettings, nil)
		case kind == framePing && flags&flagAck == 0:
			h.reply(framePing, payload)
		case kind == frameWindowUpdate && stream == 0 && len(payload) == 4:
			h.window += int(binary.BigEndian.Uint32(payload))
		}
	}
}

// reply acknowledges a frame, unless a header is unfinished.
func (h *h2conn) reply(kind byte, payload []byte) {
	if !h.unfinished {
		h.frame(kind, flagAck, 0, payload)
	}
}

// next reads a frame.
func (h *h2conn) next() (kind, flags byte, stream uint32, payload []byte, err error) {
	var head [9]byte
	if _, err = io.ReadFull(h.in, head[:]); err != nil {
		return 0, 0, 0, nil, err
	}
	payload = make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	_, err = io.ReadFull(h.in, payload)
	return head[3], head[4], binary.BigEndian.Uint32(head[5:]), payload, err
}

// settings reads the peer's window.
func (h *h2conn) settings(payload []byte) {
	for ; len(payload) >= 6; payload = payload[6:] {
		if binary.BigEndian.Uint16(payload) == settingInitialWindow {
			h.streamWindow = int(binary.BigEndian.Uint32(payload[2:]))
		}
	}
}

// frame writes a frame and reports success.
func (h *h2conn) frame(kind, flags byte, stream uint32, payload []byte) bool {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	_, err := h.Write(append(binary.BigEndian.AppendUint32(head, stream), payload...))
	return err == nil
}

// header writes a header block in one or more frames. Without end, the block is continued later.
func (h *h2conn) header(stream uint32, block []byte, flags byte) bool {
	h.unfinished = flags&flagEndHeaders == 0
	kind := byte(frameHeaders)
	for {
		part := block[:min(len(block), maxFrame)]
		block = block[len(part):]
		last := flags
		if len(block) > 0 {
			last &^= flagEndHeaders
		}
		if kind == frameContinuation {
			last &^= flagEndStream
		}
		if !h.frame(kind, last, stream, part) {
			return false
		}
		if kind = frameContinuation; len(block) == 0 {
			return true
		}
	}
}

// field encodes a header field without indexing (HPACK, RFC 7541 §6.2.2).
func field(name, value string) []byte { return literal(0x00, name, value) }

func literal(form byte, name, value string) []byte {
	b := append([]byte{form}, length(len(name))...)
	b = append(b, name...)
	b = append(b, length(len(value))...)
	return append(b, value...)
}

// length encodes a number with a prefix of seven bits (HPACK, RFC 7541 §5.1).
func length(n int) []byte {
	if n < 127 {
		return []byte{byte(n)}
	}
	b := []byte{127}
	for n -= 127; n >= 128; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return append(b, byte(n))
}

// fields encodes header fields with different names and equal encoded size.
func fields(count, size int) []byte {
	var b bytes.Buffer
	for n := range count {
		b.Write(field(fmt.Sprintf("x%03x", n), strings.Repeat("v", max(0, size-7))))
	}
	return b.Bytes()
}

// ok encodes the start of a good response's header, followed by others.
func ok(more ...[]byte) []byte {
	return slices.Concat(append([][]byte{field(":status", "200")}, more...)...)
}

func goodHTTP2(h *h2conn, stream uint32) {
	if h.header(stream, ok(field("content-type", "text/plain")), flagEndHeaders) {
		h.frame(frameData, flagEndStream, stream, []byte("ok"))
	}
}

func shortFields(h *h2conn, stream uint32) {
	h.header(stream, ok(fields(1500, 7)), 0)
}

// headerStalls counts 32 bytes of each field, as RFC 9113 §6.5.2 does.
func headerStalls(h *h2conn, stream uint32) {
	h.header(stream, ok(fields(FullHeaderLines, FullHeader/FullHeaderLines-32)), 0)
}

// headerBomb puts a field of 4000 bytes into the dynamic table, where it gets the index 62, and names it again and
// again.
func headerBomb(h *h2conn, stream uint32) {
	bomb := literal(0x40, "x-bomb", strings.Repeat("x", 4000))
	h.header(stream, ok(bomb, bytes.Repeat([]byte{0x80 | 62}, 12<<10)), flagEndHeaders)
}

func endlessHeader(h *h2conn, stream uint32) {
	if !h.header(stream, ok(), 0) {
		return
	}
	for more := fields(64, 200); h.frame(frameContinuation, 0, stream, more); {
	}
}

func endlessInterim(h *h2conn, stream uint32) {
	early := append(field(":status", "103"), field("link", "</style.css>")...)
	for h.header(stream, early, flagEndHeaders) {
	}
}

func endlessTrailer(h *h2conn, stream uint32) {
	if !h.header(stream, ok(), flagEndHeaders) || !h.frame(frameData, 0, stream, []byte("ok")) {
		return
	}
	if !h.header(stream, field("x-filler", "x"), flagEndStream) {
		return
	}
	for more := fields(64, 200); h.frame(frameContinuation, 0, stream, more); {
	}
}

func fullBody(h *h2conn, stream uint32) {
	header := ok(fields(FullHeaderLines, FullHeader/FullHeaderLines-32))
	if !h.header(stream, header, flagEndHeaders) {
		return
	}
	left := min(h.window, h.streamWindow, 60<<10)
	for h.window -= left; left > 0; {
		part := body[:min(left, maxFrame)]
		if !h.frame(frameData, 0, stream, part) {
			return
		}
		left -= len(part)
	}
}

func statusZero(h *h2conn, stream uint32) {
	h.header(stream, field(":status", "000"), flagEndHeaders|flagEndStream)
}
