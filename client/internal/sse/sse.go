// Package sse reads server-sent events.
package sse

import (
	"bufio"
	"bytes"
	"io"
	"iter"
)

// Event is an event.
type Event struct {
	Kind string
	Data []byte
}

// maxLine bounds a line.
const maxLine = 1 << 20

// maxData bounds the data of an event, which may have several lines.
const maxData = 4 << 20

// Events returns the events that are read. The last pair has the error that ended them, io.ErrUnexpectedEOF at their
// end. heard is called for each line.
func Events(from io.Reader, heard func()) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := bufio.NewScanner(from)
		lines.Buffer(nil, maxLine)
		var e Event
		for lines.Scan() {
			heard()
			name, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch {
			case string(name) == "event":
				e.Kind = string(value)
			case string(name) == "data":
				e.Data = append(append(e.Data, value...), '\n')
				if len(e.Data) > maxData {
					yield(Event{}, bufio.ErrTooLong)
					return
				}
			case len(lines.Bytes()) == 0:
				e.Data = bytes.TrimSuffix(e.Data, []byte("\n"))
				if e.Data != nil && !yield(e, nil) {
					return
				}
				e = Event{}
			}
		}
		err := lines.Err()
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		yield(Event{}, err)
	}
}
