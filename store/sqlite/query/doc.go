// Package query reads jobs from a snapshot of the database: one with its record, pages of a list, and which ids are
// known.
//
// It sees what was committed last, and needs neither the writer nor what it keeps in memory.
package query
