package store

import (
	"context"
	"time"
)

// Tail passes messages between the processes of a store while there are readers: the events that clients watch live.
// Messages are kept for seconds. A fault of the store may lose some, and repeat one whose reply was lost.
type Tail interface {
	// AppendTail appends a message of at most MaxTailMessage bytes, unless it is empty or there are no readers. It
	// returns up to MaxTailReaders readers that ReadTail announced within TailTTL, in no order: those that read last.
	AppendTail(ctx context.Context, message []byte) (readers [][]byte, err error)

	// ReadTail announces a reader for TailTTL, and returns the messages after a position, oldest first, with the
	// position of the last of them. At position 0 it returns no messages, only the current position. It returns at most
	// TailReadMessages; then the caller reads again at once. A reader that reads less often than every few seconds
	// misses messages. The description of the reader is not empty, and is returned by AppendTail as it is.
	ReadTail(ctx context.Context, reader []byte, after int64) (messages [][]byte, position int64, err error)

	// LeaveTail withdraws the announcement of a reader.
	LeaveTail(ctx context.Context, reader []byte) error
}

// Bounds of a Tail.
const (
	// TailTTL is how long a reader that does not read stays announced, and messages are kept at most.
	TailTTL = 10 * time.Second
	// MaxTailMessages is the number of messages that are kept; the oldest are removed first.
	MaxTailMessages = 128
	// MaxTailMessage bounds a message, in bytes.
	MaxTailMessage = 128 << 10
	// TailReadMessages bounds the messages of one ReadTail.
	TailReadMessages = 32
	// MaxTailReaders bounds the readers that AppendTail returns.
	MaxTailReaders = 256
)
