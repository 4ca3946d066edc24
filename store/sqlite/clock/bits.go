package clock

import (
	"math"
	mathbits "math/bits"
)

// delayedBits bounds a set of numbers, a bit each.
const delayedBits = 1 << 26

// bits is a set of numbers that forgets the oldest.
type bits struct {
	first int64 // numbers below are not in it
	words []uint64
}

// put adds or removes a number.
func (b *bits) put(n int64, in bool) {
	if n < b.first {
		return
	}
	i := int((n - b.first) / 64)
	if i >= delayedBits/64 {
		b.forget(n - delayedBits/2)
		i = int((n - b.first) / 64)
	}
	for i >= len(b.words) {
		if !in {
			return
		}
		b.words = append(b.words, 0)
	}
	if mask := uint64(1) << ((n - b.first) % 64); in {
		b.words[i] |= mask
	} else {
		b.words[i] &^= mask
	}
}

// has reports whether a number is in the set.
func (b *bits) has(n int64) bool {
	i := (n - b.first) / 64
	return n >= b.first && i < int64(len(b.words)) && b.words[i]&(1<<((n-b.first)%64)) != 0
}

// last returns the largest number in the set up to n; 0: there is none.
func (b *bits) last(n int64) int64 {
	if n < b.first {
		return 0
	}
	of := (n - b.first) / 64
	for i := min(of, int64(len(b.words))-1); i >= 0; i-- {
		word := b.words[i]
		if i == of {
			word &= math.MaxUint64 >> (63 - (n-b.first)%64)
		}
		if word != 0 {
			return b.first + i*64 + int64(mathbits.Len64(word)) - 1
		}
	}
	return 0
}

// forget removes the numbers up to last.
func (b *bits) forget(last int64) {
	words := min(max(0, (last-b.first)/64), int64(len(b.words)))
	b.words = append([]uint64(nil), b.words[words:]...)
	b.first += words * 64
	switch i := last - b.first; {
	case len(b.words) == 0:
		b.first = max(b.first, last+1)
	case i >= 0:
		b.words[0] &^= math.MaxUint64 >> (63 - i)
	}
}
