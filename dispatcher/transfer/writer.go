package transfer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
)

// A writer writes the lines of a file, in sections.
type writer struct {
	out io.Writer
	// ended is called after each section.
	ended func()

	// What was written.
	lines, sections, documents int
	ledger                     Ledger
	unreadable                 Ledger // jobs that could not be read

	pending bytes.Buffer // the section
	count   int          // its lines
	hash    hash.Hash
}

func newWriter(out io.Writer, ended func()) *writer {
	return &writer{out: out, ended: ended, ledger: make(Ledger), unreadable: make(Ledger), hash: sha256.New()}
}

// write writes a line.
func (w *writer) write(l *line) error {
	text, err := encodeLine(l)
	if err != nil {
		return err
	}
	if w.count == sectionLines || w.count > 0 && w.pending.Len()+len(text) > sectionBytes {
		if err := w.endSection(); err != nil {
			return err
		}
	}
	w.pending.Write(text)
	w.hash.Write(text)
	w.count++
	switch {
	case l.Document != nil:
		w.documents++
	case l.Job != nil:
		w.ledger.add(l.Job.Queue, l.Job.State)
	}
	return nil
}

// endSection ends the section, unless it is empty, and writes it out.
func (w *writer) endSection() error {
	if w.count == 0 {
		return nil
	}
	text, err := encodeLine(&line{Section: &sectionEnd{
		Number: w.sections + 1, Lines: w.count, SHA256: hex.EncodeToString(w.hash.Sum(nil)),
		Unreadable: w.unreadable,
	}})
	if err != nil {
		return err
	}
	w.pending.Write(text)
	if _, err := w.out.Write(w.pending.Bytes()); err != nil {
		return fmt.Errorf("write the file: %w", err)
	}
	w.lines += w.count + 1
	w.sections++
	w.count = 0
	w.pending.Reset()
	w.hash.Reset()
	w.ended()
	return nil
}

// end writes the last line.
func (w *writer) end() error {
	if err := w.endSection(); err != nil {
		return err
	}
	w.lines++
	text, err := encodeLine(&line{End: &end{
		Lines: w.lines, Sections: w.sections, Documents: w.documents, Jobs: w.ledger.Jobs(), Ledger: w.ledger,
	}})
	if err == nil {
		_, err = w.out.Write(text)
	}
	if err != nil {
		return fmt.Errorf("write the file: %w", err)
	}
	return nil
}

// encodeLine returns a line with its line break.
func encodeLine(l *line) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // values of documents stay as they are
	if err := e.Encode(l); err != nil {
		return nil, fmt.Errorf("encode a line: %w", err)
	}
	return b.Bytes(), nil
}
