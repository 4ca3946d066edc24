package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/store"
)

const (
	// readerCount is the number of connections that read.
	readerCount = 4
	// readLimit bounds one read, since its snapshot keeps the log from shrinking.
	readLimit = 5 * time.Second
)

// newReaders returns the pool of connections that read; nil is one that is not open yet.
func newReaders() chan *Conn {
	idle := make(chan *Conn, readerCount)
	for range readerCount {
		idle <- nil
	}
	return idle
}

// Read runs do on a snapshot of the last commit, for at most five seconds. It never delays the writer. verb says what
// is done, for errors: "list jobs".
func (d *DB) Read(ctx context.Context, verb string, do func(context.Context, *Conn) error) error {
	if err := d.Usable(ctx, verb); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	var c *Conn
	select {
	case c = <-d.readers:
	case <-d.closing:
		return fmt.Errorf("%s: %w", verb, ErrClosed)
	case <-limited.Done():
		return d.readError(ctx, limited, verb, limited.Err())
	}
	defer func() { d.readers <- c }() // also if do panics
	var err error
	if c == nil {
		c, err = d.connect(true)
	}
	if err == nil {
		if err = c.snapshot(limited, do); IsError(err) {
			err, c = errors.Join(err, c.close()), nil
		}
	}
	if err != nil {
		return d.readError(ctx, limited, verb, err)
	}
	return nil
}

// snapshot runs do in a read transaction, which ends even if do panics.
func (c *Conn) snapshot(ctx context.Context, do func(context.Context, *Conn) error) (err error) {
	if _, err = c.Exec(beginRead); err != nil {
		return err
	}
	defer func() {
		_, end := c.Exec(endRead)
		err = errors.Join(err, end)
	}()
	return do(ctx, c)
}

// readError returns the error of a read: the caller's context has ended, the read took too long, or the database
// failed.
func (d *DB) readError(ctx, limited context.Context, verb string, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", verb, ContextError(ctx))
	case limited.Err() != nil:
		return fmt.Errorf("%s: %w", verb, &store.UnavailableError{Reason: "reading the database took too " +
			"long", Err: limited.Err()})
	default:
		if IsError(err) {
			d.note(verb, err, true)
		}
		return fmt.Errorf("%s: %w", verb, Unavailable(err))
	}
}

// closeReaders waits for reads under way and closes their connections.
func (d *DB) closeReaders() error {
	var faults []error
	for range readerCount {
		if c := <-d.readers; c != nil {
			faults = append(faults, c.close())
		}
	}
	return errors.Join(faults...)
}
