// Package table has the schema of the database, its SQL statements, and the encoding and decoding of job rows.
//
// It decides nothing and keeps no state.
package table
