// Package multistore serves namespaces on one store or several. Each store has its own Dispatcher, with its own
// carrier, pool and caches, so that a store that is down or slow does not affect the namespaces of the others. Tokens
// and namespaces are on the main store.
package multistore
