// Package output prints what a server answers: as a table for people, as JSON for programs, or through a jq filter.
//
// On a terminal the default is table, elsewhere jsonl: a program never has to read a table. Everything is printed as it
// comes, a page at a time. Texts of receivers and clients may contain anything, so characters that a terminal acts on
// are escaped in every format. Texts that a filter selects are escaped on a terminal only: a file or a pipe gets them
// byte for byte. Colours appear on a terminal only, and not with NO_COLOR.
package output
