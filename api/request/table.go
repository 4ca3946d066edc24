package request

import (
	"maps"
	"time"
)

// A fieldReader reads the value of the field at a JSON pointer.
type fieldReader func(at string, raw []byte)

// fields are the fields of an object by name.
type fields map[string]fieldReader

// read reads an object. what names it in errors about unknown fields.
func (d *decoder) read(at string, raw []byte, what string, table fields) {
	for name, value := range d.object(at, raw) {
		if read, ok := table[string(name)]; ok {
			read(at+"/"+string(name), value)
		} else {
			d.unknownField(at, name, what, maps.Keys(table))
		}
	}
}

// set reads a value into dst; null sets the zero value.
func set[T any](dst *T, read func(at string, raw []byte) T) fieldReader {
	return func(at string, raw []byte) {
		var value T
		if !isNull(raw) {
			value = read(at, raw)
		}
		*dst = value
	}
}

// setPointer reads a value whose zero is not the default; null sets nil.
func setPointer[T any](dst **T, read func(at string, raw []byte) T) fieldReader {
	return set(dst, func(at string, raw []byte) *T { return new(read(at, raw)) })
}

// count reads an integer, clamped to an int's range.
func (d *decoder) count(at string, raw []byte) int { return clampInt(d.integer(at, raw)) }

// positiveCount reads an integer that must not be 0.
func (d *decoder) positiveCount(at string, raw []byte) int { return outOfRangeIfZero(d.count(at, raw)) }

// positiveDuration reads a duration that must not be 0.
func (d *decoder) positiveDuration(at string, raw []byte) time.Duration {
	return outOfRangeIfZero(d.duration(at, raw))
}
