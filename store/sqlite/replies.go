package sqlite

import (
	"github.com/ringback/ringback/store/sqlite/memory"
)

// once runs do, or returns what it returned under the same token. weigh returns about how many bytes an answer keeps.
func once[T any](tx *tx, c memory.Call, weigh func(T) int, do func() (T, error)) (T, error) {
	value, undo, err := memory.Once(tx.Mem.Replies, c, tx.Now.Mono, weigh, do)
	if undo != nil {
		tx.OnUndo(undo)
	}
	return value, err
}

// light weighs answers of a few words.
func light[T any](T) int { return 64 }
