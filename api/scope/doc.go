// Package scope applies what a request's token may send and see within its role: its topics, bodies, and the settings of
// topics and lanes.
package scope
