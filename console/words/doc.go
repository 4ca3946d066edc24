// Package words is how the console says numbers, times and the codes of the API.
//
// Its functions are pure: they read no clock and no settings. They never fail: a value that has no words of its own is
// passed through or named as unknown. Results are plain text, so whoever writes them into a page escapes them. All
// functions are safe for concurrent use.
package words
