package db

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// SQLite replays a write-ahead log over any file that it finds beside it. If the log was written for another file, for
// instance because a backup was copied into its place after a crash, the result is a damaged database. SQLite stores
// nothing that ties a log to its file, so this package does: the table wal_check holds a random mark and the one before
// it, alone on its page. A new mark is written
//
//   - at the beginning of each log, so that the first such page in a log names the mark of the file under it;
//   - before each checkpoint and when the database is closed, so that the mark of the file under a log is that of its
//     last state, and no earlier copy has it.
//
// So the mark of a file, read without the log, is either the one that the log's first page names, or one of those in
// the log, a part of which may be in the file already. A copy that was made while the same log was written has such a
// mark too: replaying the log over it gives the last state.

// walCheck makes the table of marks.
const walCheck = `
CREATE TABLE wal_check ( -- one row, which ties a log to the file
  one  INTEGER PRIMARY KEY,
  mark INTEGER NOT NULL,
  base INTEGER NOT NULL -- the mark before
);
INSERT INTO wal_check VALUES (1, 0, 0);
`

// newMark returns a random mark, which is not 0.
func newMark() int64 { return rand.Int64() | 1 }

// markLog writes a new mark. If that fails, the mark before it stays valid. Only the writer calls it.
func (d *DB) markLog() {
	if d.conn == nil || d.broken {
		return
	}
	if _, err := d.conn.Exec(updateMark, newMark()); err != nil {
		d.noteWriterError("mark the log", err)
	}
	d.countWritten(d.conn.written())
}

// markNewLog writes a mark into a log that has begun anew, as it may with the first write after a checkpoint that has
// moved all of it. Only the writer calls it.
func (d *DB) markNewLog() {
	if !d.checkpointed.Load() || d.conn == nil || d.broken {
		return
	}
	if salt := logSalt(d.path); salt != d.salt {
		d.checkpointed.Store(false)
		d.markLog()
		d.salt = logSalt(d.path)
	}
}

// logSalt reads the salt in the header of a log, which changes whenever the log begins anew; 0: there is no log.
func logSalt(path string) uint64 {
	log, err := os.Open(path + WAL)
	if err != nil {
		return 0
	}
	defer log.Close()
	var salt [8]byte
	if _, err := log.ReadAt(salt[:], 16); err != nil {
		return 0
	}
	return binary.BigEndian.Uint64(salt[:])
}

// A foreignLogError is the error of a log that was not written for the file beside it.
type foreignLogError struct{ path, why string }

func (e *foreignLogError) Error() string {
	name := filepath.Base(e.path)
	return fmt.Sprintf("the log %s-wal does not belong to the database %s: %s. Was the database replaced, by a "+
		"backup perhaps? "+
		"To use the file as it is, move %s-wal out of the way (\"ringback restore\" does); what is in it and not in "+
		"the file is then lost",
		name, e.path, e.why, name)
}

// IsForeignLog reports whether err says that a log was not written for the file beside it.
func IsForeignLog(err error) bool {
	_, ok := errors.AsType[*foreignLogError](err)
	return ok
}

// checkLog returns a foreignLogError if the log was not written for the file beside it. No other process and no
// connection of this process may use the database meanwhile. A log or a file that cannot be judged passes.
func checkLog(ctx context.Context, path string) error {
	log, err := readLog(path+WAL, 0)
	if err != nil || log.frames == 0 {
		return err
	}
	header := make([]byte, 100)
	opened, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &foreignLogError{path, "the file is missing"}
	}
	if err != nil {
		return fmt.Errorf("look at the database: %w", err)
	}
	_, err = io.ReadFull(opened, header)
	if closed := opened.Close(); closed != nil {
		return fmt.Errorf("look at the database: %w", closed)
	}
	switch {
	case errors.Is(err, io.EOF):
		return &foreignLogError{path, "the file is empty"}
	case err != nil || string(header[:16]) != "SQLite format 3\x00":
		return nil //nolint:nilerr // SQLite reports what it is
	case header[18] != 2 || header[19] != 2:
		return &foreignLogError{path, "the file was written without a log"}
	}
	page, mark := fileMark(ctx, path)
	if mark == 0 {
		return nil
	}
	if log, err = readLog(path+WAL, page); err != nil {
		return err
	}
	if len(log.marks) == 0 || log.base == mark || slices.Contains(log.marks, mark) {
		return nil
	}
	return &foreignLogError{path, "it was begun over another state of the file"}
}

// fileMark reads the mark of a database file without its log, and the number of its page. The mark is 0 if the file has
// none or cannot be read without the log.
func fileMark(ctx context.Context, path string) (page uint32, mark int64) {
	c, err := connectImmutable(path)
	if err != nil {
		return 0, 0
	}
	defer c.close()
	var root int64
	if err := c.ints(ctx, "SELECT rootpage, (SELECT mark FROM wal_check) FROM sqlite_schema WHERE name = "+
		"'wal_check'", &root, &mark); err != nil {
		return 0, 0 // among others: a file whose tables are in the log alone
	}
	return uint32(root), mark
}

// A writeAheadLog is what checkLog reads of a log.
type writeAheadLog struct {
	frames int
	base   int64   // of the first page with a mark: the mark before it
	marks  []int64 // of all pages with one
}

// Sizes in a log, in bytes: https://www.sqlite.org/fileformat2.html#walformat.
const (
	walHeaderSize   = 32
	frameHeaderSize = 24
)

// readLog reads the frames of a log that SQLite would replay (and those after the last commit), and the marks on a
// page. A log that is missing or invalid has no frames.
func readLog(path string, page uint32) (log writeAheadLog, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return log, nil
	}
	if err != nil {
		return log, fmt.Errorf("read the database's log: %w", err)
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<20)
	header := make([]byte, walHeaderSize)
	if _, err := io.ReadFull(in, header); err != nil {
		return log, ignoreEOF(err)
	}
	const magic = 0x377f0682 // and in the last bit, the byte order of checksums
	order := binary.ByteOrder(binary.LittleEndian)
	if header[3]&1 == 1 {
		order = binary.BigEndian
	}
	size := binary.BigEndian.Uint32(header[8:])
	sum := checksum{order: order}
	sum.add(header[:24])
	if binary.BigEndian.Uint32(header)&^1 != magic || size < 512 || size > 65536 || !sum.is(header[24:]) {
		return log, nil
	}
	frame := make([]byte, frameHeaderSize+size)
	for {
		if _, err := io.ReadFull(in, frame); err != nil {
			return log, ignoreEOF(err)
		}
		sum.add(frame[:8])
		sum.add(frame[frameHeaderSize:])
		if string(frame[8:16]) != string(header[16:24]) || !sum.is(frame[16:]) {
			return log, nil
		}
		log.frames++
		if page == 0 || binary.BigEndian.Uint32(frame) != page {
			continue
		}
		if mark, base, ok := parseMark(frame[frameHeaderSize:]); ok {
			if len(log.marks) == 0 {
				log.base = base
			}
			log.marks = append(log.marks, mark)
		}
	}
}

// ignoreEOF returns nil for the end of a file: a log may end anywhere.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return fmt.Errorf("read the database's log: %w", err)
}

// A checksum is the running checksum of a log.
type checksum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

// add adds bytes, whose number is a multiple of 8.
func (c *checksum) add(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		c.s0 += c.order.Uint32(b) + c.s1
		c.s1 += c.order.Uint32(b[4:]) + c.s0
	}
}

func (c *checksum) is(b []byte) bool {
	return binary.BigEndian.Uint32(b) == c.s0 && binary.BigEndian.Uint32(b[4:]) == c.s1
}

// parseMark reads the row of wal_check from its page: a leaf of a table with one cell, whose record has three columns.
// The first is the rowid and stored as NULL.
func parseMark(page []byte) (mark, base int64, ok bool) {
	const leaf = 13
	if page[0] != leaf || binary.BigEndian.Uint16(page[3:]) != 1 {
		return 0, 0, false
	}
	at := int(binary.BigEndian.Uint16(page[8:]))
	// Length of the record, rowid, length of its header and three types: each a byte.
	if at+6 > len(page) {
		return 0, 0, false
	}
	cell := page[at:]
	if cell[1] != 1 || cell[2] != 4 || cell[3] != 0 {
		return 0, 0, false
	}
	mark, rest, ok := parseInteger(cell[4], cell[6:])
	if !ok {
		return 0, 0, false
	}
	base, _, ok = parseInteger(cell[5], rest)
	return mark, base, ok
}

// parseInteger reads an integer of a record.
func parseInteger(kind byte, b []byte) (n int64, rest []byte, ok bool) {
	sizes := map[byte]int{1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}
	size, ok := sizes[kind]
	if !ok || len(b) < size {
		return 0, nil, false
	}
	if kind == 9 {
		n = 1
	}
	for i, c := range b[:size] {
		if i == 0 && c >= 0x80 {
			n = -1
		}
		n = n<<8 | int64(c)
	}
	return n, b[size:], true
}
