// Package logs bounds the lines of a log, decouples the process from the log's reader, and keeps secrets out of lines.
package logs
