// Package console serves Ringback's web console: pages for people, in front of the HTTP API.
//
// The console is a client of the API in the same process: each page calls it with the token of its reader. So what a
// reader may see and do, namespaces, audit lines and redaction are the API's, and a request that the API refuses is
// refused, whatever a page shows. The console itself refuses what the role of the token does not allow before a page is
// made.
//
// Readers sign in with a token. The browser keeps it in a cookie, encrypted with a key derived from the root tokens,
// for 12 hours; the server stores nothing, and each request checks the token again. Where the API needs no token,
// neither does the console. Root tokens choose the namespace by the path: /console/@NAME/.
//
// Pages are rendered on the server and work without JavaScript. Their live blocks are rendered again every few seconds
// while somebody watches, once for all who watch the same page with the same token, and sent as server-sent events when
// they changed. The content security policy allows scripts and styles of this server only. Every value is escaped by
// the templates, which are html/template without methods.
//
// Package web has what pages are made of; the packages of pages are below this one. The handler is safe for concurrent
// use.
package console
