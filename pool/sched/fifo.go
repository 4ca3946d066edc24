package sched

import (
	"iter"
	"slices"
)

// fifo is a queue in a slice whose head moves; memory follows what is in it. The zero value is empty.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(x T) { f.items = append(f.items, x) }

// first is the one that pop takes next.
func (f *fifo[T]) first() T { return f.items[f.head] }

// at returns element i, counted from the first.
func (f *fifo[T]) at(i int) T { return f.items[f.head+i] }

// pop takes the first; the fifo must not be empty.
func (f *fifo[T]) pop() T {
	var none T
	x := f.items[f.head]
	f.items[f.head] = none
	f.head++
	switch {
	case f.head == len(f.items):
		if cap(f.items) > 1024 {
			f.items = nil
		}
		f.items, f.head = f.items[:0], 0
	case f.head > 32 && f.head > len(f.items)/2:
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	return x
}

// all goes over what is in it, first to last.
func (f *fifo[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, x := range f.items[f.head:] {
			if !yield(x) {
				return
			}
		}
	}
}

// toFront makes the first that satisfies match the one that pop takes next, and reports whether there is one.
func (f *fifo[T]) toFront(match func(T) bool) bool {
	waiting := f.items[f.head:]
	i := slices.IndexFunc(waiting, match)
	if i < 0 {
		return false
	}
	x := waiting[i]
	copy(waiting[1:], waiting[:i])
	waiting[0] = x
	return true
}
