package db

import (
	"context"
	"fmt"

	lib "modernc.org/sqlite/lib"
)

// A UnitOfWork is the caller's side of a Tx: its changes in memory, which follow the database.
type UnitOfWork interface {
	// Flush writes what is left to write, before the commit.
	Flush() error
	// Apply is called after the commit.
	Apply()
	// Undo restores memory after the transaction has failed.
	Undo()
}

// A Writer commits calls in groups, in one goroutine.
type Writer[U UnitOfWork] struct {
	*DB
	begin   func(*Tx) U
	calls   chan *Call[U]
	group   []*Call[U]
	started bool
}

// A Call is one call to the writer.
type Call[U UnitOfWork] struct {
	// Verb says what it does, for errors: "insert jobs".
	Verb string
	// Run does it. It must change nothing before it has found every reason not to. It may run again after the
	// transaction was rolled back. An Error rolls the transaction back; any other error is the result of the call.
	Run func(U) error
	// Durable calls return after fsync.
	Durable bool
	// Gone, if set, returns the reason why the caller has left, or nil. The call is not made for a caller that has
	// left.
	Gone func() error
	// Weight is about how many rows it writes.
	Weight int

	err  error
	done chan struct{}
}

// Bounds of one transaction.
const (
	groupWeight = 4096 // rows, so that a commit stays short
	groupCalls  = 1024
)

// Open locks and opens a database, or makes it. begin is called at the beginning of each transaction. ctx limits the
// opening, not the life of the database.
func Open[U UnitOfWork](ctx context.Context, o Options, begin func(*Tx) U) (*Writer[U], error) {
	d, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Writer[U]{DB: d, begin: begin, calls: make(chan *Call[U], groupCalls)}, nil
}

// Alone commits one call, before Start.
func (w *Writer[U]) Alone(c *Call[U]) error {
	if err := w.commit([]*Call[U]{c}); err != nil {
		return err
	}
	return c.err
}

// Start starts the writer and the checkpointer.
func (w *Writer[U]) Start() {
	w.started = true
	w.recordFiles()
	w.markLog()
	w.salt = logSalt(w.path)
	go w.run()
	w.others.Go(w.checkpoint)
	if w.LogBytes() > w.truncateAbove { // the last process could not move it
		w.signalCheckpoint()
	}
}

// Close commits the transaction under way and closes the database. Calls that wait fail with ErrClosed.
func (w *Writer[U]) Close() error {
	close(w.closing)
	if w.started {
		<-w.written
		w.others.Wait()
		w.markLog()
	}
	if err := w.release(); err != nil {
		return fmt.Errorf("close the database %s: %w", w.path, err)
	}
	return nil
}

// Submit hands a call to the writer and waits for its commit. If ctx ends first, the call may still take effect, and
// what Run writes to belongs to the writer: it is the caller's only after Submit has returned nil or the call's own
// error.
func (w *Writer[U]) Submit(ctx context.Context, c *Call[U]) error {
	if err := w.Usable(ctx, c.Verb); err != nil {
		return err
	}
	c.done = make(chan struct{})
	select {
	case w.calls <- c:
	case <-w.closing:
		return fmt.Errorf("%s: %w", c.Verb, ErrClosed)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", c.Verb, ContextError(ctx))
	}
	select {
	case <-c.done:
	case <-w.written:
		select {
		case <-c.done:
		default:
			return fmt.Errorf("%s: %w", c.Verb, ErrClosed)
		}
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", c.Verb, ContextError(ctx))
	}
	if c.err != nil {
		return fmt.Errorf("%s: %w", c.Verb, Unavailable(c.err))
	}
	return nil
}

// Waiting returns the number of calls that wait for a transaction.
func (w *Writer[U]) Waiting() int { return len(w.calls) }

// run commits waiting calls until the database is closed.
func (w *Writer[U]) run() {
	defer close(w.written)
	for !w.isClosing() {
		var first *Call[U]
		select {
		case first = <-w.calls:
		case task := <-w.tasks:
			task()
			continue
		case <-w.closing:
			return
		}
		w.commitAndReply(w.gather(first))
		w.markNewLog()
	}
}

// gather returns the waiting calls, without waiting for more.
func (w *Writer[U]) gather(first *Call[U]) []*Call[U] {
	group := w.group[:0]
	group = append(group, first)
	weight := first.Weight
	for weight < groupWeight && len(group) < groupCalls {
		select {
		case c := <-w.calls:
			group = append(group, c)
			weight += c.Weight
			continue
		default:
		}
		break
	}
	w.group = group
	return group
}

// commitAndReply commits a group and answers its callers. If the transaction fails for a reason that may lie in one
// call, each call is tried and answered alone, so that only one that cannot be written fails. That ends with the first
// error that affects all of them, and when the database is closed.
func (w *Writer[U]) commitAndReply(group []*Call[U]) {
	err := w.commit(group)
	if err == nil || len(group) == 1 || w.broken || affectsAll(err) {
		for i := range group {
			w.reply(group, i, err)
		}
		return
	}
	var rest error
	for i, c := range group {
		if rest == nil && w.isClosing() {
			rest = ErrClosed
		}
		if rest != nil {
			w.reply(group, i, rest)
			continue
		}
		err := w.commit([]*Call[U]{c})
		w.reply(group, i, err)
		if w.broken || affectsAll(err) {
			rest = err
		}
	}
}

// reply answers the caller of a group's call, with the transaction's error or the call's own. A failure of the database
// is noted before the next transaction.
func (w *Writer[U]) reply(group []*Call[U], i int, err error) {
	c := group[i]
	if err != nil {
		c.err = err
	}
	if IsError(c.err) {
		w.note(c.Verb, c.err, false)
	}
	group[i] = nil // the slice is used again
	close(c.done)
}

// commit runs a group as one transaction. An error means that nothing has changed, in memory or on disk.
func (w *Writer[U]) commit(group []*Call[U]) error {
	if err := w.health.damage(); err != nil { // found while the calls waited
		return err
	}
	if err := w.reconnect(); err != nil {
		return err
	}
	durable := false
	for _, c := range group {
		durable = durable || c.Durable
	}
	if err := w.resync(durable); err != nil {
		return err
	}
	tx := &Tx{Conn: w.conn, db: w.DB, durable: durable}
	t := w.begin(tx)
	filesErr := w.checkFiles(durable)
	for _, c := range group {
		if c.Durable && filesErr != nil {
			c.err = filesErr
			continue
		}
		if c.Gone != nil {
			if c.err = c.Gone(); c.err != nil {
				continue
			}
		}
		if c.err = c.Run(t); IsError(c.err) {
			return w.abort(tx, t, c.err)
		}
	}
	if err := t.Flush(); err != nil {
		return w.abort(tx, t, err)
	}
	if tx.begun {
		if _, err := w.conn.Exec(commit); err != nil {
			w.unsynced = w.unsynced || (durable && primaryCode(err) == lib.SQLITE_IOERR)
			return w.abort(tx, t, err)
		}
		w.countWritten(w.conn.written())
		if w.filesUnseen {
			w.recordFiles()
		}
	}
	t.Apply()
	// The files may have gone since the first check.
	if err := w.checkFiles(durable); err != nil {
		for _, c := range group {
			if c.Durable && c.err == nil {
				c.err = err
			}
		}
	}
	return nil
}

// abort rolls a transaction back. If SQLite cannot, the connection is replaced before the next one.
func (w *Writer[U]) abort(tx *Tx, t U, cause error) error {
	t.Undo()
	if !tx.begun {
		return cause
	}
	// SQLite may have rolled back itself, after a full disk for instance. Then there is no transaction, and a new one
	// can begin.
	_, err := w.conn.Exec(rollback)
	if err != nil {
		if _, err = w.conn.Exec(beginWrite); err == nil {
			_, err = w.conn.Exec(rollback)
		}
	}
	w.broken = err != nil
	return cause
}
