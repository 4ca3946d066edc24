// Package table is what lies in the database: the tables, the statements that use them, and rows of jobs.
//
// It decides nothing and keeps no state.
package table
