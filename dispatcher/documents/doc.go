// Package documents caches the documents of one kind, decoded. A cache is reloaded when it is used and has become older than
// its maximum age; while the store cannot be read, it is used as it is.
package documents
