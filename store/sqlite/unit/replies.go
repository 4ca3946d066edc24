package unit

import (
	"context"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
)

// Submit has the writer make a call, whose Run is do, once for its Verb and a token: a repeat returns what the first
// returned. weigh returns about how many bytes an answer keeps.
func Submit[T any](
	ctx context.Context, w *db.Writer[*Unit], token store.Token, c db.Call[*Unit], weigh func(T) int,
	do func(*Unit) (T, error),
) (answer T, err error) {
	var written T // the writer's until it has answered
	c.Run = func(u *Unit) (err error) {
		written, err = Once(u, memory.Call{Method: c.Verb, Token: token}, weigh, func() (T, error) { return do(u) })
		return err
	}
	if err := w.Submit(ctx, &c); err != nil {
		return answer, err
	}
	return written, nil
}

// Once is the part of Submit within a unit of work.
func Once[T any](u *Unit, c memory.Call, weigh func(T) int, do func() (T, error)) (T, error) {
	replies := u.Mem.Replies
	if c.Token.IsShared() {
		replies = u.Mem.SharedReplies
	}
	value, undo, err := memory.Once(replies, c, u.Now.Mono, weigh, do)
	if undo != nil {
		u.OnUndo(undo)
	}
	return value, err
}

// StoreReply stores, with the changes of the unit, what settlements with a shared token are answered.
func (u *Unit) StoreReply(token store.Token, refused []error) {
	u.replies = memory.AppendReply(u.replies, token, refused)
}
