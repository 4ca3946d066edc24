// Package capacity declares what clients may occupy of a process, and shares it between namespaces and between stores.
//
// Table lists all bounds; code and docs/capacity.md take them from there. A Semaphore counts the units in use of one
// bound by namespace and store, so that a namespace at its worst, or a store that hangs, leaves room for the others.
//
// All of it is safe for concurrent use.
package capacity
