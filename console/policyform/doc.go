// Package policyform has the forms of a topic's policy and of a lane's settings: their fields, how settings are shown
// in them, and which change they ask for. It also says a policy in sentences.
//
// Values of fields are texts. An empty text is the default. The names of fields are those of the API, with a dot before
// a member of an object: breaker.open. The functions are pure and safe for concurrent use.
package policyform
