package db

import "database/sql/driver"

// A Tx is the transaction of a group of calls. It begins with the first write: reads alone need none.
type Tx struct {
	// Conn is the writer's connection.
	Conn *Conn

	db      *DB
	durable bool // the commit is followed by fsync
	begun   bool
}

// Exec runs a statement that writes.
func (t *Tx) Exec(id Statement, args ...driver.Value) error {
	_, err := t.Change(id, args...)
	return err
}

// Change is Exec that returns how many rows have changed.
func (t *Tx) Change(id Statement, args ...driver.Value) (int64, error) {
	if err := t.Begin(); err != nil {
		return 0, err
	}
	return t.Conn.Exec(id, args...)
}

// Begin begins the transaction unless it has begun. Many reads that a write will follow are cheaper within it, since
// each read alone takes and releases a lock.
func (t *Tx) Begin() error {
	if t.begun {
		return nil
	}
	if err := t.db.setSync(t.durable); err != nil {
		return err
	}
	if _, err := t.Conn.Exec(beginWrite); err != nil {
		return err
	}
	t.begun = true
	return nil
}

// Query is Conn.Query that no context ends.
func (t *Tx) Query(id Statement, each func([]driver.Value) error, args ...driver.Value) error {
	return t.Conn.Query(shared, id, each, args...)
}

// WithoutOverwriting runs do, whose removed rows are not overwritten in the file: for large ones, zeros cost as much to
// write as the content did.
func (t *Tx) WithoutOverwriting(do func() error) error {
	if err := t.Conn.execText(notZeroed); err != nil {
		return err
	}
	err := do()
	if restored := t.Conn.execText(zeroed); err == nil {
		err = restored
	}
	return err
}
