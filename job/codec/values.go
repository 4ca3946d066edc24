package codec

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"
)

// Durations are varints of nanoseconds, times varints of Unix milliseconds. Zero values are empty.

func appendDuration(b []byte, d time.Duration) []byte {
	if d == 0 {
		return b
	}
	return binary.AppendVarint(b, int64(d))
}

func readDuration(d *time.Duration, value []byte) error {
	n, width := binary.Varint(value)
	if width != len(value) {
		return ErrMalformed
	}
	*d = time.Duration(n)
	return nil
}

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return binary.AppendVarint(b, t.UnixMilli())
}

func readTime(t *time.Time, value []byte) error {
	ms, width := binary.Varint(value)
	if width != len(value) {
		return ErrMalformed
	}
	*t = time.UnixMilli(ms).UTC()
	return nil
}

func readUint(value []byte) (uint64, error) {
	n, width := binary.Uvarint(value)
	if width <= 0 || width != len(value) {
		return 0, ErrMalformed
	}
	return n, nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendHeader appends sorted names, each with its list of values. A nil header is empty; an empty one is a zero count.
func appendHeader(b []byte, header map[string][]string) []byte {
	if header == nil {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(header)))
	for _, name := range slices.Sorted(maps.Keys(header)) {
		b = appendString(b, name)
		b = binary.AppendUvarint(b, uint64(len(header[name])))
		for _, v := range header[name] {
			b = appendString(b, v)
		}
	}
	return b
}

func readHeader(value []byte) (map[string][]string, error) {
	r := reader{b: value}
	n := r.count()
	header := make(map[string][]string, n)
	for ; n > 0 && !r.bad; n-- {
		name := r.text()
		values := make([]string, 0, 1)
		for k := r.count(); k > 0 && !r.bad; k-- {
			values = append(values, r.text())
		}
		header[name] = values
	}
	return header, r.end()
}

// appendLabels appends sorted names, each with its value.
func appendLabels(b []byte, labels map[string]string) []byte {
	if labels == nil {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(labels)))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b = appendString(appendString(b, name), labels[name])
	}
	return b
}

func readLabels(value []byte) (map[string]string, error) {
	r := reader{b: value}
	n := r.count()
	labels := make(map[string]string, n)
	for ; n > 0 && !r.bad; n-- {
		name := r.text()
		labels[name] = r.text()
	}
	return labels, r.end()
}

// reader decodes counts and strings; bad is set when the bytes are malformed.
type reader struct {
	b   []byte
	bad bool
}

// count reads a number of items that follow, each at least one byte long.
func (r *reader) count() int {
	n, width := binary.Uvarint(r.b)
	if width <= 0 || n > uint64(len(r.b)-width) {
		r.bad = true
		return 0
	}
	r.b = r.b[width:]
	return int(n)
}

func (r *reader) text() string {
	n := r.count()
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *reader) end() error {
	if r.bad || len(r.b) > 0 {
		return ErrMalformed
	}
	return nil
}
