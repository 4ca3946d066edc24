// Package tail implements store.Tail on Redis: the messages and the readers are two sorted sets, which expire.
package tail

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

//go:embed *.lua
var files embed.FS

var (
	scriptAppend = layout.New(files, "append")
	scriptRead   = layout.New(files, "read")
	scriptLeave  = layout.New(files, "leave")
)

// Tail is the tail of a store. It is safe for concurrent use.
type Tail struct {
	runner *layout.Runner
	keys   []string
}

// New returns the tail of a store with the keys of its first shard.
func New(runner *layout.Runner, first *layout.Keys) *Tail {
	return &Tail{runner: runner, keys: []string{first.Tail, first.TailReaders}}
}

// AppendTail implements store.Tail.
func (t *Tail) AppendTail(ctx context.Context, message []byte) ([][]byte, error) {
	reply, err := t.runner.Eval(ctx, scriptAppend, t.keys, []any{
		message, store.TailTTL.Milliseconds(), store.MaxTailMessages, store.MaxTailReaders,
	})
	if err != nil {
		return nil, fmt.Errorf("append to the tail: %w", err)
	}
	var readers [][]byte
	for _, reader := range layout.Strs(reply) {
		readers = append(readers, []byte(reader))
	}
	return readers, nil
}

// ReadTail implements store.Tail.
func (t *Tail) ReadTail(
	ctx context.Context, reader []byte, after int64,
) (messages [][]byte, position int64, err error) {
	reply, err := t.runner.Eval(ctx, scriptRead, t.keys, []any{
		reader, after, store.TailTTL.Milliseconds(), store.TailReadMessages,
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read the tail: %w", err)
	}
	if after == 0 {
		return nil, layout.Num(reply), nil
	}
	for _, member := range layout.Strs(reply) {
		number, text, _ := strings.Cut(member, " ")
		messages, after = append(messages, []byte(text)), layout.Num(number)
	}
	return messages, after, nil
}

// LeaveTail implements store.Tail.
func (t *Tail) LeaveTail(ctx context.Context, reader []byte) error {
	if _, err := t.runner.Eval(ctx, scriptLeave, t.keys, []any{reader}); err != nil {
		return fmt.Errorf("leave the tail: %w", err)
	}
	return nil
}
