package work

import "github.com/ringback/ringback/store/sqlite/memory"

// Once runs do, or returns what it returned under the same token. weigh returns about how many bytes an answer keeps.
func Once[T any](u *Unit, c memory.Call, weigh func(T) int, do func() (T, error)) (T, error) {
	value, undo, err := memory.Once(u.Mem.Replies, c, u.Now.Mono, weigh, do)
	if undo != nil {
		u.OnUndo(undo)
	}
	return value, err
}
