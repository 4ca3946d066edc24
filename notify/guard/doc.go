// Package guard decides which addresses attempts may call.
//
// It admits public addresses, and what its options allow beyond them. It refuses the addresses at which clouds hand out
// credentials and those of this service's own API. Denied networks and names win over allowed ones.
//
// A Guard is asked twice: at registration about what a URL says literally (CheckURL), and at every dial about the address
// that is really connected to (CheckDial, CheckAddr). The second check is what protects: a name that resolves differently a
// second time gains nothing. It looks no names up itself.
//
// A Guard is safe for concurrent use.
package guard
