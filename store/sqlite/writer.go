package sqlite

import (
	"context"
	"errors"
	"fmt"

	lib "modernc.org/sqlite/lib"

	"github.com/ringback/ringback/store"
)

// An op is one call on its way through the writer.
type op struct {
	// verb says what it does, for errors: "insert jobs".
	verb string
	// run does it. It must change nothing before it has found every reason not to, and may run again after a
	// transaction was taken back. What it returns other than a diskError is the call's own answer.
	run func(*tx) error
	// durable calls are answered after fsync.
	durable bool
	// gone, where it is set, returns why the caller has left; the call is then not made.
	gone func() error
	// weight is about how many rows it writes.
	weight int

	err  error
	done chan struct{}
}

// The bounds of one transaction: so many rows, so that a commit stays short, and so many calls.
const (
	groupWeight = 4096
	groupCalls  = 1024
)

// submit hands a call to the writer and waits for its commit. When ctx ends first, the call may still take effect, and
// what its run writes to is the writer's: only after nil is it the caller's.
func (s *Store) submit(ctx context.Context, o *op) error {
	if ctx.Err() != nil {
		return ended(ctx, o.verb)
	}
	o.done = make(chan struct{})
	select {
	case <-s.closing:
		return fmt.Errorf("%s: %w", o.verb, errClosed)
	default:
	}
	select {
	case s.ops <- o:
	case <-s.closing:
		return fmt.Errorf("%s: %w", o.verb, errClosed)
	case <-ctx.Done():
		return ended(ctx, o.verb)
	}
	select {
	case <-o.done:
	case <-s.written:
		select {
		case <-o.done:
		default:
			return fmt.Errorf("%s: %w", o.verb, errClosed)
		}
	case <-ctx.Done():
		return ended(ctx, o.verb)
	}
	if o.err != nil {
		return fmt.Errorf("%s: %w", o.verb, s.unavailable(o.verb, o.err, false))
	}
	return nil
}

// write is the writer: it commits the waiting calls as one transaction, until the store closes.
func (s *Store) write() {
	defer close(s.written)
	for !s.isClosing() {
		var first *op
		select {
		case first = <-s.ops:
		case task := <-s.tasks:
			task()
			continue
		case <-s.closing:
			return
		}
		s.settle(s.gather(first))
		s.markNewLog()
	}
}

// gather takes the waiting calls, without waiting for more.
func (s *Store) gather(first *op) []*op {
	group := s.group[:0]
	group = append(group, first)
	weight := first.weight
	for weight < groupWeight && len(group) < groupCalls {
		select {
		case o := <-s.ops:
			group = append(group, o)
			weight += o.weight
			continue
		default:
		}
		break
	}
	s.group = group
	return group
}

// settle commits a group and answers its callers. When the transaction fails for a reason that may be one call's own,
// each call is tried alone, so that one that cannot be written fails by itself, and is answered as soon as it was. That
// ends with the first fault that would meet all of them, and when the store closes.
func (s *Store) settle(group []*op) {
	err := s.commit(group)
	if err == nil || len(group) == 1 || s.broken || affectsAll(err) {
		for i := range group {
			reply(group, i, err)
		}
		return
	}
	var rest error
	for i, o := range group {
		if rest == nil && s.isClosing() {
			rest = errClosed
		}
		if rest != nil {
			reply(group, i, rest)
			continue
		}
		err := s.commit([]*op{o})
		reply(group, i, err)
		if s.broken || affectsAll(err) {
			rest = err
		}
	}
}

// reply lets the caller of a group's call go, with a fault or with the call's own answer.
func reply(group []*op, i int, fault error) {
	o := group[i]
	if fault != nil {
		o.err = fault
	}
	group[i] = nil // the slice is used again
	close(o.done)
}

func (s *Store) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// commit runs a group as one transaction. An error means that nothing happened, in memory or on disk. SQLite writes
// nothing more in a transaction that has met a damaged page: when that has shown what to leave alone, it is run again.
func (s *Store) commit(group []*op) error {
	for {
		known := s.mem.damages
		err := s.commitOnce(group)
		if !isDamage(err) || s.mem.damages == known {
			return err
		}
	}
}

func (s *Store) commitOnce(group []*op) error {
	if err := s.reconnect(); err != nil {
		return err
	}
	durable := false
	for _, o := range group {
		durable = durable || o.durable
	}
	s.serial++
	now := s.clock()
	s.mem.steps.look(now, s.mem.lastN)
	tx := &tx{store: s, mem: s.mem, conn: s.conn, now: now, serial: s.serial, durable: durable}
	save(tx, &s.mem.numbers)
	if err := s.resync(durable); err != nil {
		return err
	}
	intact := s.intact(durable)
	for _, o := range group {
		if o.durable && intact != nil {
			o.err = intact
			continue
		}
		if o.gone != nil {
			if o.err = o.gone(); o.err != nil {
				continue
			}
		}
		if o.err = o.run(tx); isDisk(o.err) {
			return s.abort(tx, o.err)
		}
	}
	if err := tx.flush(); err != nil {
		return s.abort(tx, err)
	}
	if tx.begun {
		if _, err := s.conn.exec(commit); err != nil {
			s.unsynced = s.unsynced || (durable && primaryCode(err) == lib.SQLITE_IOERR)
			return s.abort(tx, err)
		}
		s.commits++
		s.noteWritten(s.conn.written())
		if s.filesUnchecked {
			s.lookAtFiles()
		}
	}
	tx.apply()
	// Between the first look and the commit the files may have gone.
	if err := s.intact(durable); err != nil {
		for _, o := range group {
			if o.durable && o.err == nil {
				o.err = err
			}
		}
	}
	return nil
}

// resync moves the log into the database after a commit whose fsync has failed: the system may take what it did not write
// for written from then on, so that another fsync of the log would succeed without it. Only then something is promised
// again.
func (s *Store) resync(durable bool) error {
	if !durable || !s.unsynced {
		return nil
	}
	busy, err := s.cut()
	switch {
	case err != nil:
		return err
	case busy:
		return &store.UnavailableError{Reason: "the log of the database is in use: it has to be written anew after the disk has failed"}
	}
	s.unsynced = false
	return nil
}

// noteFault notes what has met the writer outside a transaction, or the checkpointer: it may have been an fsync of the log.
func (s *Store) noteFault(verb string, err error) {
	s.unsynced = s.unsynced || primaryCode(err) == lib.SQLITE_IOERR
	s.health.note(verb, err, false, s.clock())
}

// intact returns an error when the files are not those that were opened. Durable transactions call it before and after.
func (s *Store) intact(durable bool) error {
	if !durable {
		return nil
	}
	err := s.files.Check()
	switch {
	case err != nil && !s.lost:
		s.log.Error("a file of the database is gone: nothing more is taken until it is back, and what was taken since the last checkpoint is lost with this process",
			"database", s.path, "err", err)
	case err == nil && s.lost:
		s.log.Info("the files of the database are back", "database", s.path)
	}
	s.lost = err != nil
	return err
}

// lookAtFiles remembers the files that the writer's connection has opened.
func (s *Store) lookAtFiles() {
	if err := s.files.Record(); err != nil {
		s.log.Warn("cannot watch the database's files", "err", err)
		return
	}
	s.filesUnchecked = false
}

// abort takes a transaction back. When SQLite cannot, the connection is replaced before the next one.
func (s *Store) abort(tx *tx, cause error) error {
	tx.rollback()
	if !tx.begun {
		return cause
	}
	// SQLite may have taken the transaction back itself, after a full disk for instance; then there is none, and a new
	// one can begin.
	if _, err := s.conn.exec(rollback); err != nil {
		if _, err := s.conn.exec(begin); err != nil {
			s.broken = true
			return cause
		}
		if _, err := s.conn.exec(rollback); err != nil {
			s.broken = true
		}
	}
	return cause
}

// reconnect replaces the writer's connection after a fault that it did not survive.
func (s *Store) reconnect() error {
	if !s.broken {
		return nil
	}
	if err := s.files.Check(); err != nil {
		return err
	}
	s.files.ForgetLog()
	if s.conn != nil {
		if err := s.conn.close(); err != nil {
			s.log.Debug("closing a broken connection failed", "err", err)
		}
		s.conn = nil
	}
	c, err := connect(s.path, false)
	if err != nil {
		return err
	}
	s.conn, s.broken, s.level, s.filesUnchecked = c, false, unset, true
	s.checkpointed.Store(true) // its log may be a new one
	return nil
}

// Levels of PRAGMA synchronous as they were last set; unset on a new connection.
const (
	unset = iota
	normal
	full
)

// synchronous chooses whether the next commit is followed by fsync. SQLite takes the setting outside a transaction only.
func (s *Store) synchronous(durable bool) error {
	level, pragma := normal, "PRAGMA synchronous=NORMAL"
	if durable {
		level, pragma = full, "PRAGMA synchronous=FULL"
	}
	if s.level == level {
		return nil
	}
	if err := s.conn.execText(pragma); err != nil {
		return err
	}
	s.level = level
	return nil
}

func isDisk(err error) bool {
	_, ok := errors.AsType[*diskError](err)
	return ok
}

// bound holds callers to the contract's bounds.
func bound(what string, n int) {
	if n > store.MaxBatch {
		panic(fmt.Sprintf("sqlite: %d %s in one call, more than store.MaxBatch", n, what))
	}
}
