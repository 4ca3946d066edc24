// This part of the package sends lines in streams until each has a result. It makes no request, and does not know what
// lines and results say.

package stream

import (
	"cmp"
	"slices"
)

// Bounds of the lines that are in flight: they are kept until they have a result.
const (
	MaxLines = 1000
	maxBytes = 4 << 20
)

// BatchLine is a line on its way.
type BatchLine struct {
	Index int // its position in all lines
	ID    string
	Text  []byte
	// Repeated is set when it is sent again after a try that may have been processed.
	Repeated bool
	pending  bool // it was sent on the stream, and nothing is known of it
}

// BatchAnswer is a result of a line, or why the line must be sent again.
type BatchAnswer[R any] struct {
	Line   int   // its position in the stream, from 0
	Again  error // nil: Result is its result
	Result R
}

// BatchOptions are the options of New.
type BatchOptions[R any] struct {
	// Open begins a request.
	Open func() *Stream[BatchAnswer[R]]
	// Done passes on the result of a line, and Failed why lines have no result. Done returns false if no more is
	// wanted.
	Done   func(BatchLine, R) bool
	Failed func(error)
	// IsTemporary reports whether lines may be sent again after an error, and Wait waits before that. It returns why
	// they are not. IsUnprocessed reports whether the server has surely not processed those without a result.
	IsTemporary   func(error) bool
	IsUnprocessed func(error) bool
	Wait          func(b *Backoff, cause error) error
}

// Batch is the lines without a result, and the stream that they are sent on. It is for one goroutine.
type Batch[R any] struct {
	opts    BatchOptions[R]
	waiting []BatchLine // without a result, in order
	bytes   int
	stream  *Stream[BatchAnswer[R]] // nil: none
	sent    []int                   // the index of each line of the stream
	// unavailable is why a line is sent again.
	unavailable error
	pause       Backoff
}

// NewBatch returns a Batch.
func NewBatch[R any](o BatchOptions[R]) *Batch[R] { return &Batch[R]{opts: o} }

// Add sends a line, and passes on the results that are there. It returns false if no more is wanted, or if lines have
// failed.
func (b *Batch[R]) Add(line BatchLine) bool {
	if len(b.waiting) > 0 && (len(b.waiting) == MaxLines || b.bytes+len(line.Text) > maxBytes) && !b.Finish() {
		return false
	}
	b.waiting, b.bytes = append(b.waiting, line), b.bytes+len(line.Text)
	if b.stream == nil {
		b.open()
	}
	if !b.send(&b.waiting[len(b.waiting)-1]) || len(b.sent) == MaxLines {
		return b.Finish()
	}
	for {
		select {
		case a, open := <-b.stream.Results():
			if !open {
				return b.Finish()
			}
			if !b.accept(a) {
				return false
			}
		default:
			return true
		}
	}
}

// Finish waits until every line has a result, and sends those without one again. It returns what Add returns.
func (b *Batch[R]) Finish() bool {
	for {
		if b.stream == nil && len(b.waiting) > 0 {
			b.open()
			for i := range b.waiting {
				if !b.send(&b.waiting[i]) {
					break
				}
			}
		}
		before := len(b.waiting)
		if b.stream != nil && !b.drain() {
			return false
		}
		if len(b.waiting) == 0 {
			b.bytes, b.stream, b.pause = 0, nil, Backoff{}
			return true
		}
		for i := range b.waiting {
			b.markRepeated(&b.waiting[i], cmp.Or(b.stream.Err(), ErrEnded))
		}
		cause := cmp.Or(b.stream.Err(), b.unavailable, ErrEnded)
		b.stream, b.unavailable = nil, nil
		if !b.opts.IsTemporary(cause) {
			b.opts.Failed(cause)
			return false
		}
		if len(b.sent) > 1 && len(b.waiting) == 1 && b.waiting[0].Index == b.sent[len(b.sent)-1] {
			b.pause = Backoff{} // the sequence paused, and the server ended a stream whose lines all had results
			continue
		}
		if len(b.waiting) < before { // results are progress
			b.pause = Backoff{}
		}
		if err := b.opts.Wait(&b.pause, cause); err != nil {
			b.opts.Failed(err)
			return false
		}
	}
}

// drain ends the stream, and passes on its results. It returns false if no more is wanted.
func (b *Batch[R]) drain() bool {
	b.stream.CloseSend()
	for {
		a, open := b.stream.Receive()
		if !open {
			return true
		}
		if !b.accept(a) {
			return false
		}
	}
}

// accept passes on a result, unless its line is sent again. It returns false if no more is wanted.
func (b *Batch[R]) accept(a BatchAnswer[R]) bool {
	if a.Again != nil {
		b.unavailable = a.Again
	}
	if a.Line < 0 || a.Line >= len(b.sent) {
		return true
	}
	index := b.sent[a.Line]
	i := slices.IndexFunc(b.waiting, func(l BatchLine) bool { return l.Index == index })
	if i < 0 {
		return true
	}
	if a.Again != nil {
		b.markRepeated(&b.waiting[i], a.Again)
		return true
	}
	line := b.waiting[i]
	b.waiting = slices.Delete(b.waiting, i, i+1)
	return b.opts.Done(line, a.Result)
}

// open begins a request.
func (b *Batch[R]) open() { b.sent, b.stream = b.sent[:0], b.opts.Open() }

// send sends a line. It returns false if the stream has ended.
func (b *Batch[R]) send(line *BatchLine) bool {
	b.sent = append(b.sent, line.Index)
	line.pending = b.stream.Send(line.Text)
	return line.pending
}

// markRepeated marks a line that was sent, and has no result for a cause.
func (b *Batch[R]) markRepeated(line *BatchLine, cause error) {
	line.Repeated = line.Repeated || line.pending && !b.opts.IsUnprocessed(cause)
	line.pending = false
}

// Close ends the stream, if there is one, and waits for its end.
func (b *Batch[R]) Close() {
	if b.stream != nil {
		b.stream.Close()
	}
}
