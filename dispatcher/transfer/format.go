package transfer

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringback/ringback/store"
)

// formatVersion is the version of the file.
const formatVersion = 1

// sectionLines bounds the lines of a section. It is a variable for tests: short sections make them fast.
var sectionLines = store.MaxBatch

const (
	// sectionBytes bounds a section in bytes. A single line may be longer.
	sectionBytes = store.RecordBytes
	// maxLine bounds a line in bytes: a body of job.MaxBody takes at most twice its size.
	maxLine = 48 << 20
)

// line is a line of the file. One of its members is set.
type line struct {
	Header   *header     `json:"ringback_export,omitempty"`
	Document *document   `json:"document,omitempty"`
	Job      *jobLine    `json:"job,omitempty"`
	Section  *sectionEnd `json:"section,omitempty"`
	End      *end        `json:"end,omitempty"`
}

// header is the first line.
type header struct {
	Format  int    `json:"format"`
	Version string `json:"version"` // of Ringback
	// ID is that of the export, 26 random characters.
	ID             string      `json:"id"`
	CreatedAt      time.Time   `json:"created_at"`
	Stores         []storeLine `json:"stores"`
	WithoutSecrets bool        `json:"without_secrets,omitempty"`
	// Snapshot is that of the stores at the beginning of the export.
	Snapshot snapshot `json:"snapshot"`
}

// storeLine is a store from which an export is.
type storeLine struct {
	Name   string `json:"name"`
	URL    string `json:"url"` // without a password
	Shards int    `json:"shards"`
}

// document is a line with a document.
type document struct {
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Lane      string          `json:"lane,omitempty"`
	Value     json.RawMessage `json:"value"`
}

func (d *document) key() store.DocumentKey {
	return store.DocumentKey{Kind: d.Kind, Namespace: d.Namespace, Name: d.Name, Lane: d.Lane}
}

// describe names a document in messages.
func describe(key store.DocumentKey) string {
	text := key.Kind + " " + key.Namespace + "/" + key.Name
	if key.Lane != "" {
		text += "/" + key.Lane
	}
	return text
}

// sectionEnd is the line that ends a section.
type sectionEnd struct {
	Number int    `json:"number"` // from 1
	Lines  int    `json:"lines"`  // without this one
	SHA256 string `json:"sha256"` // of the lines with their line breaks, in hexadecimal
	// Unreadable has the jobs so far that could not be read.
	Unreadable Ledger `json:"unreadable,omitempty"`
	// Next is in files of earlier versions, and not read.
	Next json.RawMessage `json:"next,omitempty"`
}

// end is the last line.
type end struct {
	Lines     int    `json:"lines"` // with this one
	Sections  int    `json:"sections"`
	Documents int    `json:"documents"`
	Jobs      int64  `json:"jobs"`
	Ledger    Ledger `json:"ledger"`
}

// A FormatError is a fault of the file.
type FormatError struct {
	Line   int // from 1
	Detail string
}

func (e *FormatError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Detail) }

// faultf returns the error of a line.
func faultf(number int, format string, args ...any) error {
	return &FormatError{Line: number, Detail: fmt.Sprintf(format, args...)}
}

// A CutOffError is the error of a file that ends before its last line.
type CutOffError struct{ Line int }

func (e *CutOffError) Error() string {
	return fmt.Sprintf("the file was cut off after line %d: its last line is missing", e.Line)
}
