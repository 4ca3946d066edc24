// Package policies caches the policies of topics.
//
// Claims report the store's revision, so a process that claims reloads the cache when it changes (Sync), without
// polling. Other callers name the age at which they need it reloaded (Snapshot), or reload it (Reload): see package
// documents.
package policies
