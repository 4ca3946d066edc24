package sqlite

import (
	"github.com/ringback/ringback/store/sqlite/txn"
)

import "github.com/ringback/ringback/store/sqlite/db"

// A tx is one transaction, shared by the calls that were waiting.
type tx struct {
	txn.Tx
	store *Store
}

func (s *Store) begin(t *db.Tx) *tx {
	tx := &tx{store: s}
	s.base.Begin(&tx.Tx, t)
	return tx
}
