//go:build race

package audit

import "runtime"

// Two processors may run timers of one bubble of synctest at once, with the same context of the race detector, which
// then crashes: https://go.dev/issue/78156. The detector finds races on one processor as well, since it compares the
// order that synchronization gives, not the moments.
func init() { runtime.GOMAXPROCS(1) }
