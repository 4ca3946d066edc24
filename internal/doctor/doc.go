// Package doctor looks for what is wrong around Ringback (stores, clocks, limits, rights, settings) and says what to do
// about it.
//
// A Check makes Findings; Run runs checks side by side within bounds, so that something that hangs delays nobody. What
// cannot be looked at is unknown, never ok. Checks change nothing, and can run beside a service and in its process.
// They are given what they look at: the package reads no flags and no configuration.
package doctor
