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

	"github.com/ringback/ringback/store/sqlite/file"
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
INSERT INTO wal_check VALUES (1, 1 << 62, 1 << 62);
`

// leastMark is that of a new database, and makes each mark one that SQLite stores in eight bytes.
const leastMark = 1 << 62

// newMark returns a random mark.
func newMark() int64 { return rand.Int64() | leastMark }

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
	log, err := os.Open(path + file.WAL)
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
	page, mark := fileMark(ctx, path)
	log, err := readLog(path+file.WAL, page)
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
	defer opened.Close()
	switch _, err = io.ReadFull(opened, header); {
	case errors.Is(err, io.EOF):
		return &foreignLogError{path, "the file is empty"}
	case err != nil || string(header[:16]) != "SQLite format 3\x00":
		return nil // SQLite reports what it is
	case header[18] != 2 || header[19] != 2:
		return &foreignLogError{path, "the file was written without a log"}
	}
	if mark == 0 || len(log.marks) == 0 || log.base == mark || slices.Contains(log.marks, mark) {
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

// readLog reads the frames of a log that SQLite would replay, and the marks on a page. A frame that was not written as
// a whole counts, too: no file has its mark. A log that is missing or invalid has no frames.
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
	size := binary.BigEndian.Uint32(header[8:])
	if size < 512 || size > 65536 {
		return log, nil
	}
	for frame := make([]byte, frameHeaderSize+size); ; log.frames++ {
		if _, err := io.ReadFull(in, frame); err != nil {
			return log, ignoreEOF(err)
		}
		if string(frame[8:16]) != string(header[16:24]) { // the salt: it is of an earlier log
			return log, nil
		}
		mark, base, ok := parseMark(frame[frameHeaderSize:])
		if !ok || binary.BigEndian.Uint32(frame) != page {
			continue
		}
		if len(log.marks) == 0 {
			log.base = base
		}
		log.marks = append(log.marks, mark)
	}
}

// ignoreEOF returns nil for the end of a file: a log may end anywhere.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return fmt.Errorf("read the database's log: %w", err)
}

// parseMark reads the row of wal_check from its page: a leaf of a table with one cell, at its end. That has six bytes:
// the length of the record, the rowid, the length of the record's header, and the types of its columns (NULL for the
// rowid, and two integers of eight bytes); and then the integers.
func parseMark(page []byte) (mark, base int64, ok bool) {
	cell := page[len(page)-22:]
	if page[0] != 13 || binary.BigEndian.Uint16(page[3:]) != 1 || string(cell[:6]) != "\x14\x01\x04\x00\x06\x06" {
		return 0, 0, false
	}
	return int64(binary.BigEndian.Uint64(cell[6:])), int64(binary.BigEndian.Uint64(cell[14:])), true
}
