package main

import "runtime/debug"

// ballastBytes is memory that nobody touches, so that it takes up none. The collector counts it as in use, and lets the heap
// grow by as much before it runs: a process that delivers has some 15 MB in use, and would collect as soon as it has as much
// garbage, many times a second. What a large heap grows by stays what GOGC says, unlike with a higher GOGC.
const ballastBytes = 32 << 20

// ballast is empty where GOMEMLIMIT leaves no room for it, since it counts there too.
func ballast() []byte {
	if debug.SetMemoryLimit(-1) < 8*ballastBytes {
		return nil
	}
	return make([]byte, ballastBytes)
}
