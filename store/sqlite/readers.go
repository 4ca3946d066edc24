package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/file"
)

// Bounds of reads: connections, and the time that one read may take, since a snapshot keeps the log from shrinking.
const (
	readerCount = 4
	readLimit   = 5 * time.Second
)

// readers are the connections of reads: they see the last commit and never hold up the writer.
type readers struct {
	path  string
	files *file.Watch
	idle  chan *conn // nil: not opened yet
}

func newReaders(path string, files *file.Watch) *readers {
	r := &readers{path: path, files: files, idle: make(chan *conn, readerCount)}
	for range readerCount {
		r.idle <- nil
	}
	return r
}

// read runs do on a snapshot of the database.
func (s *Store) read(ctx context.Context, verb string, do func(context.Context, *conn) error) error {
	if _, err := s.at(ctx, verb); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	var c *conn
	select {
	case c = <-s.readers.idle:
	case <-s.closing:
		return fmt.Errorf("%s: %w", verb, errClosed)
	case <-limited.Done():
		return s.readFault(ctx, limited, verb, limited.Err())
	}
	c, err := s.readers.use(limited, c, do)
	s.readers.idle <- c
	if err != nil {
		return s.readFault(ctx, limited, verb, err)
	}
	return nil
}

// use runs do on a connection, which it opens when there is none. The connection it answers is the one to keep: none
// after a fault.
func (r *readers) use(ctx context.Context, c *conn, do func(context.Context, *conn) error) (_ *conn, err error) {
	if c == nil {
		if c, err = connectAgain(r.path, r.files, true); err != nil {
			return nil, err
		}
	}
	if _, err = c.exec(snapshot); err == nil {
		err = do(ctx, c)
		_, end := c.exec(commit)
		err = errors.Join(err, end)
	}
	if isDisk(err) {
		return nil, errors.Join(err, c.close())
	}
	return c, err
}

// readFault tells the caller's own end from a read that took too long, and both from a fault.
func (s *Store) readFault(ctx, limited context.Context, verb string, err error) error {
	switch {
	case ctx.Err() != nil:
		return ended(ctx, verb)
	case limited.Err() != nil:
		return fmt.Errorf("%s: %w", verb, &store.UnavailableError{Reason: "reading the database took too long", Err: limited.Err()})
	default:
		return fmt.Errorf("%s: %w", verb, s.unavailable(verb, err, true))
	}
}

// close waits for reads under way and closes all connections.
func (r *readers) close() error {
	var faults []error
	for range readerCount {
		if c := <-r.idle; c != nil {
			faults = append(faults, c.close())
		}
	}
	return errors.Join(faults...)
}
