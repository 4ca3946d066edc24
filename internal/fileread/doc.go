// Package fileread reads files that people and programs write: with secrets, in PEM, and such that change while the
// process runs.
package fileread
