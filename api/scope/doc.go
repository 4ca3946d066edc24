// Package scope applies what a request's token may send and see within its role: its topics, bodies, and the settings
// of topics and lanes. Secret headers in callbacks and in the changes of bulk work are redacted for every token.
package scope
