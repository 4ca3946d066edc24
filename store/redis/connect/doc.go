// Package connect connects to Redis: a single server, Sentinel or Cluster. It parses addresses, opens clients, closes
// connections that went silent, follows a cluster's redirects, checks how servers are configured, and maps their errors
// to those of package store.
//
// It knows commands, keys and servers, but neither jobs nor scripts. A Client is safe for concurrent use.
package connect
