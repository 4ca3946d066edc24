package transfer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/ringback/ringback/store"
)

// A reader reads the sections of a file and checks them.
type reader struct {
	in     *bufio.Reader
	header *header // nil: nothing was read

	// What was read.
	lines, sections, documents int
	ledger                     Ledger
}

func newReader(in io.Reader) *reader {
	return &reader{in: bufio.NewReaderSize(in, 1<<20), ledger: make(Ledger)}
}

// A section is what was read of a section.
type section struct {
	documents []numbered[document]
	jobs      []numbered[store.Record]
}

// numbered is what a line has, with the number of the line.
type numbered[T any] struct {
	line  int
	value T
}

// read reads the next section. It returns io.EOF after the last line. Nothing of a section is returned before its
// checksum was checked.
func (r *reader) read() (*section, error) {
	p := &section{}
	ledger, hash, first := make(Ledger), sha256.New(), r.lines+1
	for count := 0; ; count++ {
		text, err := r.readLine()
		if err != nil {
			return nil, err
		}
		l, err := parseLine(r.lines, text)
		if err != nil {
			return nil, err
		}
		switch {
		case (l.Header != nil) != (r.lines == 1):
			return nil, faultf(r.lines, "must be the only line with ringback_export, the first one")
		case l.Header != nil:
			if r.header, err = checkHeader(l.Header); err != nil {
				return nil, err
			}
		case l.Section != nil:
			if err := r.checkSection(l.Section, count, first, hex.EncodeToString(hash.Sum(nil))); err != nil {
				return nil, err
			}
			r.sections++
			r.documents += len(p.documents)
			for row, n := range ledger {
				r.ledger[row] += n
			}
			return p, nil
		case l.End != nil:
			if count > 0 {
				return nil, faultf(r.lines, "end must come after a section")
			}
			return nil, r.checkEnd(l.End)
		case l.Document != nil:
			if err := l.Document.check(); err != nil {
				return nil, faultf(r.lines, "%v", err)
			}
			p.documents = append(p.documents, numbered[document]{r.lines, *l.Document})
		default:
			record, err := l.Job.record()
			if err != nil {
				return nil, faultf(r.lines, "%v", err)
			}
			ledger.add(record.Queue, record.State)
			p.jobs = append(p.jobs, numbered[store.Record]{r.lines, record})
		}
		hash.Write(text)
		if count >= sectionLines {
			return nil, faultf(r.lines, "a section has at most %d lines", sectionLines)
		}
	}
}

// readLine reads the next line with its line break.
func (r *reader) readLine() ([]byte, error) {
	var text []byte
	for {
		some, err := r.in.ReadSlice('\n')
		text = append(text, some...)
		switch {
		case err == nil:
			r.lines++
			return text, nil
		case errors.Is(err, io.EOF):
			return nil, &CutOffError{Line: r.lines}
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("read the file: %w", err)
		case len(text) > maxLine:
			return nil, faultf(r.lines+1, "is longer than %d MiB", maxLine>>20)
		}
	}
}

// parseLine parses a line. Only known members are allowed, and one of them.
func parseLine(number int, text []byte) (*line, error) {
	l := &line{}
	if err := decodeStrictly(text, l); err != nil {
		return nil, faultf(number, "%v", err)
	}
	set := 0
	for _, is := range []bool{l.Header != nil, l.Document != nil, l.Job != nil, l.Section != nil, l.End != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return nil, faultf(number, "must have one of ringback_export, document, job, section and end")
	}
	return l, nil
}

// decodeStrictly decodes one JSON value, and refuses members that are not known.
func decodeStrictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("must be one JSON object")
	}
	return nil
}

func checkHeader(h *header) (*header, error) {
	switch {
	case h.Format != formatVersion:
		return nil, faultf(1, "has the format %d (of Ringback %s), and this version reads %d: use that "+
			"version", h.Format, h.Version, formatVersion)
	case len(h.ID) != len(store.NewToken()):
		return nil, faultf(1, "id must be that of an export")
	}
	return h, nil
}

// checkSection checks the line that ends a section.
func (r *reader) checkSection(s *sectionEnd, count, first int, sum string) error {
	switch {
	case s.Number != r.sections+1:
		return faultf(r.lines, "is the section %d, and must be %d: lines are missing, or come "+
			"twice", s.Number, r.sections+1)
	case s.Lines != count:
		return faultf(r.lines, "counts %d lines since line %d, and there are %d", s.Lines, first, count)
	case s.SHA256 != sum:
		return faultf(r.lines, "the checksum of the lines %d to %d differs: one of them is damaged", first, r.lines-1)
	}
	return nil
}

// checkEnd checks the last line, and that nothing comes after it.
func (r *reader) checkEnd(e *end) error {
	if e.Lines != r.lines || e.Sections != r.sections || e.Documents != r.documents || e.Jobs != r.ledger.Jobs() ||
		!maps.Equal(e.Ledger, r.ledger) {
		return faultf(r.lines,
			"counts %d lines, %d sections, %d documents and %d jobs, and there are %d, %d, %d and %d, or others",
			e.Lines, e.Sections, e.Documents, e.Jobs, r.lines, r.sections, r.documents, r.ledger.Jobs())
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
		return faultf(r.lines+1, "comes after the last line")
	}
	return io.EOF
}
