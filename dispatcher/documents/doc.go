// Package documents caches the documents of one kind, decoded.
//
// Callers name the age at which they need the cache reloaded (Snapshot), reload it (Reload), or reload it when the
// store reports another revision (Sync). A load reads what has changed since the last one, and decodes nothing else.
// While the store cannot be read, the cache is used as it is, unless a caller bounds its age.
package documents
