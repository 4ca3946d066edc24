// Package dispatcher registers jobs and delivers them: it combines a store, a carrier, a pool and a deliverer. It is
// also a Go library, in which functions can handle jobs (Handle); package api is its HTTP front end.
//
// A Dispatcher does nothing until Run; Register, Cancel and the other calls work before, during and after it. With
// Options.RegisterOnly a process accepts jobs that others deliver. All methods are safe for concurrent use.
package dispatcher
