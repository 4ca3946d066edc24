package redis

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// millisUp is a duration in whole milliseconds, rounded up: a wait is never cut short.
func millisUp(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

func putUint24(b []byte, n uint32) { b[0], b[1], b[2] = byte(n>>16), byte(n>>8), byte(n) }

func uint24(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

func uint48(b []byte) int64 { return bigEndian(b[:6]) }

func bigEndian(b []byte) int64 {
	var n int64
	for _, c := range b {
		n = n<<8 | int64(c)
	}
	return n
}

func leadingZeros(b []byte) int {
	for i, c := range b {
		if c != 0 {
			return i
		}
	}
	return len(b)
}

// appendField writes a tagged field.
func appendField(b []byte, tag byte, value []byte) []byte {
	b = append(b, tag)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

// appendText writes a tagged text, unless it is empty.
func appendText(b []byte, tag byte, text string) []byte {
	if text == "" {
		return b
	}
	return appendField(b, tag, []byte(text))
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendHeader writes names in order, each with its list of values.
func appendHeader(b []byte, header map[string][]string) []byte {
	if header == nil {
		return b
	}
	value := binary.AppendUvarint(nil, uint64(len(header)))
	for _, name := range slices.Sorted(maps.Keys(header)) {
		value = appendString(value, name)
		value = binary.AppendUvarint(value, uint64(len(header[name])))
		for _, v := range header[name] {
			value = appendString(value, v)
		}
	}
	return appendField(b, tagHeader, value)
}

func appendLabels(b []byte, labels map[string]string) []byte {
	if labels == nil {
		return b
	}
	value := binary.AppendUvarint(nil, uint64(len(labels)))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		value = appendString(appendString(value, name), labels[name])
	}
	return appendField(b, tagLabels, value)
}

// A reader takes strings and counts off the front of bytes; bad says that they were not there.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) count() int {
	n, width := binary.Uvarint(r.b)
	if width <= 0 || n > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	r.b = r.b[width:]
	return int(n)
}

func (r *reader) text() string {
	n := r.count()
	if r.bad || n > len(r.b) {
		r.bad = true
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func readHeader(value []byte) (map[string][]string, error) {
	r := reader{b: value}
	n := r.count()
	header := make(map[string][]string, n)
	for i := 0; i < n && !r.bad; i++ {
		name := r.text()
		values := make([]string, 0, 1)
		for k := r.count(); k > 0 && !r.bad; k-- {
			values = append(values, r.text())
		}
		header[name] = values
	}
	if r.bad {
		return nil, errRecord
	}
	return header, nil
}

func readLabels(value []byte) (map[string]string, error) {
	r := reader{b: value}
	n := r.count()
	labels := make(map[string]string, n)
	for i := 0; i < n && !r.bad; i++ {
		name := r.text()
		labels[name] = r.text()
	}
	if r.bad {
		return nil, errRecord
	}
	return labels, nil
}
