// Package handlers delivers jobs by calling Go functions of the program that embeds Ringback.
//
// A call is an attempt: its error climbs the ladder, unless it is a RetryError or a DeadError. A panic is an error. The
// context of a call ends after the attempt's timeout, which its lease outlives, and when the process stops. A function
// that does not return soon after that is left to itself: its attempt has failed, or is released when the process
// stops, and the job may be handled again while the function still runs. So many such calls are tolerated, and no more.
package handlers
