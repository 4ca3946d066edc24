package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// draws makes random numbers that depend on a seed and on what they are for, and not on the order in which they are
// drawn.
type draws uint64

// of returns the random numbers for a purpose.
func (d draws) of(purpose ...any) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, purpose...)
	return rand.New(rand.NewPCG(uint64(d), h.Sum64()))
}

// one returns one of the choices.
func one[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }
