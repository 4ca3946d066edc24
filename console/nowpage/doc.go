// Package nowpage is the first page of the console: whether callbacks flow, and which receivers fail and why.
//
// A visit costs the readiness and version of the process, the counters of the namespace, the lanes that hold jobs back,
// one page of topic settings, and what became of the attempts of the last two days. Answers that took long are used
// again for up to 10 s. What cannot be read is left out, and the page says so.
package nowpage
