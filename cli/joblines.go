// This part of the package reads files with a job a line.

package cli

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/internal/utf8text"
)

// maxLine bounds a line, in bytes.
const maxLine = 64 << 20

// jobLineID returns the id of a line without one: the same one for the same content of the file, or without a seed a
// new one.
func jobLineID(seed []byte, line int) string {
	if seed == nil {
		return client.NewID()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%x %d", seed, line))
	return hex.EncodeToString(sum[:16])
}

// A jobLine is a line of a file that is not empty.
type jobLine struct {
	Number int
	Job    requestFields
}

// jobLines returns the lines of a file, and the error that ends it.
func jobLines(name string, in io.Reader) iter.Seq2[jobLine, error] {
	return func(yield func(jobLine, error) bool) {
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxLine)
		line := 1
		for ; lines.Scan(); line++ {
			job, err := readJobLine(lines.Bytes())
			if err != nil {
				yield(jobLine{}, usagef("%s: line %d is not a JSON object: %w", name, line, err))
				return
			}
			if job != nil && !yield(jobLine{line, job}, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(jobLine{}, fmt.Errorf("read %s: line %d: %w", name, line, err))
		}
	}
}

// readJobLine reads a line; nil: it is empty.
func readJobLine(line []byte) (job requestFields, err error) {
	text, err := utf8text.Trim(line) // in the middle a mark is that of a file that was appended to another
	if err != nil {
		return nil, fmt.Errorf("it %w", err)
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return nil, nil // an empty line has no job
	}
	if err := json.Unmarshal(text, &job); err != nil || job == nil {
		return nil, errors.New(string(text[:min(len(text), 40)]))
	}
	return job, nil
}

// examineJobs reads a regular file, so that one with an invalid line is refused as a whole, and returns the hash of its
// content. Of other files, which can be read once, it returns nil.
func examineJobs(name string, file *os.File) ([]byte, error) {
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	content := sha256.New()
	for _, err := range jobLines(name, io.TeeReader(file, content)) {
		if err != nil {
			return nil, err
		}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read %s again: %w", name, err)
	}
	return content.Sum(nil), nil
}

// lineOutcome is what became of a line.
type lineOutcome int

// The outcomes.
const (
	registered lineOutcome = iota + 1
	before                 // it was registered already
	ended                  // it was, and has ended: it is not sent again
	lineRefused
	outcomes // their number
)

// A lineTally counts what became of the lines of a file.
type lineTally struct {
	Done int // the last line of which, and of all before it, the result is known

	counts [outcomes]int // of the lines up to Done
	open   []openLine    // those from the first one without a result on
	index  int           // of the first of them
}

// openLine is a line that is on its way, or waits for one before it.
type openLine struct {
	line    int
	outcome lineOutcome // 0: not known
}

// Add adds a line that is registered next.
func (t *lineTally) Add(line int) {
	if t.open = append(t.open, openLine{line: line}); len(t.open) == 1 && t.Done > 0 {
		t.Done = line - 1 // with empty lines
	}
}

// Finish notes what became of a line, whose index counts the lines that were added from 0 on. It returns its number.
func (t *lineTally) Finish(index int, outcome lineOutcome) int {
	finished := &t.open[index-t.index]
	finished.outcome = outcome
	line := finished.line
	for len(t.open) > 0 && t.open[0].outcome != 0 {
		t.counts[t.open[0].outcome]++
		t.Done = t.open[0].line
		t.open = t.open[1:]
		t.index++
	}
	if len(t.open) > 0 && t.Done > 0 {
		t.Done = t.open[0].line - 1
	}
	return line
}

// Refused is the number of lines that were refused.
func (t *lineTally) Refused() int { return t.counts[lineRefused] }

// Registered is the number of lines that are registered.
func (t *lineTally) Registered() int {
	return t.counts[registered] + t.counts[before] + t.counts[ended]
}

// Summary says what became of a file that was read to its end.
func (t *lineTally) Summary() string {
	earlier, note := t.counts[before]+t.counts[ended], ""
	if earlier == 0 {
		return fmt.Sprintf("%d registered, %d refused", t.Registered(), t.Refused())
	}
	if n := t.counts[ended]; n > 0 {
		note = fmt.Sprintf(" (ended, and not sent again: %d)", n)
	}
	return fmt.Sprintf("%d registered, %d of them before%s; %d refused", t.Registered(), earlier, note, t.Refused())
}

// Progress says what became of a file that is not registered to its end, and how to go on. stable reports whether a
// repeat gives lines without an id the same ones.
func (t *lineTally) Progress(stable bool) string {
	done := "no line is done"
	if t.Done > 0 {
		done = fmt.Sprintf("lines 1 to %d are done: %d registered, %d refused", t.Done, t.Registered(), t.Refused())
	}
	rest := "none is registered"
	if len(t.open) > 0 {
		rest = fmt.Sprintf("up to %d may be registered", len(t.open))
	}
	next := "repeat the command to go on: nothing is registered twice as long as the file is the same"
	if !stable {
		next = fmt.Sprintf("go on from line %d: of lines without an id, ringback job list shows whether they are "+
			"registered", t.Done+1)
	}
	return fmt.Sprintf("%s; of the lines from %d on, %s\n%s", done, t.Done+1, rest, next)
}
