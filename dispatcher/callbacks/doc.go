// Package callbacks makes the jobs that report the end of a job or a backlog: pure functions that are given the time.
//
// A callback is delivered by a job in the topic job.CallbackTopic, which has that topic's ladder, passes the address
// guard, and is signed with the secrets of the reported job's topic. Its own end is not reported.
package callbacks
