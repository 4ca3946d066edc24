// Package guard decides which addresses attempts may call.
//
// It admits public addresses and those that its options allow. It refuses the metadata services of clouds and the
// addresses of this service's API. Denied networks and names override allowed ones.
//
// A Guard checks twice: at registration the text of a URL (CheckURL), and at every dial the address that is connected
// to (CheckDial, CheckAddr), which protects against DNS rebinding. It resolves no names.
//
// A Guard is safe for concurrent use.
package guard
