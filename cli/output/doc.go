// Package output prints what a server answers: as a table for people, as JSON for programs, or through a jq filter.
//
// On a terminal the default is table, elsewhere jsonl: a program never has to read a table. Everything is printed as it
// comes, a page at a time. Texts of receivers and clients may contain anything, so characters that are not printable are
// escaped in every format. Colours appear on a terminal only, and not with NO_COLOR.
package output
