// This part of the package reads server-sent events.

package stream

import (
	"bufio"
	"bytes"
	"io"
	"iter"
)

// event is an event.
type event struct {
	Kind string
	Data []byte
}

// maxLine bounds a line.
const maxLine = 1 << 20

// maxData bounds the data of an event, which may have several lines.
const maxData = 4 << 20

// Events returns the events that are read. The last pair has the error that ended them, io.ErrUnexpectedEOF at their
// end. heard is called for each line.
func Events(from io.Reader, heard func()) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		lines := bufio.NewScanner(from)
		lines.Buffer(nil, maxLine)
		var e event
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
					yield(event{}, bufio.ErrTooLong)
					return
				}
			case len(lines.Bytes()) == 0:
				e.Data = bytes.TrimSuffix(e.Data, []byte("\n"))
				if e.Data != nil && !yield(e, nil) {
					return
				}
				e = event{}
			}
		}
		err := lines.Err()
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		yield(event{}, err)
	}
}
