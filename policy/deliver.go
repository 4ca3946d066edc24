package policy

// Deliver is how the jobs of a topic are delivered. The zero value is DeliverPush.
type Deliver string

// The ways of delivery.
const (
	DeliverPush    Deliver = "push"    // an HTTP request to the job's URL
	DeliverPull    Deliver = "pull"    // a lease for a client that asks for jobs and settles them
	DeliverHandler Deliver = "handler" // a function of the Go program that embeds Ringback
)

// Pushes reports whether jobs are delivered to their URL.
func (d Deliver) Pushes() bool { return d == "" || d == DeliverPush }

// Same reports whether two values are the same way.
func (d Deliver) Same(o Deliver) bool { return d == o || d.Pushes() && o.Pushes() }
