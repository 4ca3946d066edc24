// Package tenancy stores tokens and namespaces, and finds them at requests from a cache. A change holds in all
// processes within 5 s. While the store cannot be read, the tokens that a process knows keep working until they expire.
package tenancy
