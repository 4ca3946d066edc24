// Package dispatcher puts a store, a carrier, a pool and a deliverer together into the whole that registers jobs and
// rings until their receivers answer. It is a Go library of its own: package api is one front for it.
//
// A Dispatcher does nothing until Run; Register, Cancel and the other calls work before, during and after it. With
// Options.RegisterOnly a process takes jobs which others deliver. All methods are safe for concurrent use.
package dispatcher
