// Package forward passes jobs on to servers that Ringback cannot call, such as one on a laptop. It only makes requests
// of the API.
//
// # Leases
//
// Run leases the jobs of pulled topics, at most Options.Concurrency at a time, and sends each to the URL of its topic:
// the request that a push would make, with the same method, headers, signature and body. Only secret headers are
// missing, which the server keeps for the receiver that they were registered for. What came while nothing was forwarded
// is still there, and what is revived comes too.
//
// The answer is reported as it is (client.LeaseAnswered), and the server judges it as that to a push: success,
// give_up_on, Retry-After, ladder. A request that breaks before its answer is complete is an attempt that failed.
//
// A lease is extended while the receiver works, however long a breakpoint holds it. It lapses when the machine sleeps
// or Run is killed; then the job is due again. A request whose lease was lost is cancelled, so that the job is not in
// work twice. Jobs that were cancelled on the server are, too.
//
// While nothing listens at a URL its topics are not leased, and a job that was leased for it is given back: neither
// costs an attempt. When the context of Run ends, requests that run have Options.Grace; then they are cancelled, and
// their jobs are given back.
//
// # Copies
//
// With Options.Copy nothing is leased. Run follows the live view of the server, reads the job of each attempt that it
// makes, and sends a copy of the request. That changes nothing on the server. It is done as well as can be: attempts of
// a time without connection, and those that the live view leaves out, are missing, which Options.Say reports. The
// server signs no copies; Options.Signer does.
package forward
