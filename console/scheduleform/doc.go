// Package scheduleform reads and writes the form of a schedule: the fields in which a person describes when it runs and
// what it registers, as texts.
//
// A Form is filled from a request or from a schedule, is rendered as a list of web.Field, and is parsed to what the
// API's client sends. What is wrong with a text is said by field, before the API is asked; what the API finds is added
// by ErrorsOf. What a person did not change is parsed to what the form was made of, also where a browser would change
// it.
//
// The functions are pure and safe for concurrent use.
package scheduleform
