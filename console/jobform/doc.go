// Package jobform reads and writes the form of a job: the fields in which a person describes one, as texts.
//
// A Form is filled from a request, from a job that is copied or from a schedule, is rendered as a list of web.Field,
// and is parsed to what the API's client sends. What is wrong with a text is said by field, before the API is asked;
// what the API finds is added by ErrorsOf. Texts that a person did not change are parsed to what they were made of.
//
// The functions are pure and safe for concurrent use.
package jobform
