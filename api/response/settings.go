package response

import (
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Topic writes a topic with a policy, its own or the effective one. What the policy does not set is null.
func (o *Buffer) Topic(t *store.Topic, p policy.Topic) {
	o.Text("topic", t.Name)
	o.Number("revision", t.Revision)
	o.Members(&p)
	o.Members(&t.Updated)
	o.Durability(t.Durability)
}

// Lane writes a lane's own settings.
func (o *Buffer) Lane(l *store.Lane) {
	o.Text("topic", l.Queue.Topic)
	o.Text("lane", l.Queue.Lane)
	o.Number("revision", l.Revision)
	o.Members(&l.Settings)
	o.Members(&l.Updated)
	o.Durability(l.Durability)
}

// objectOrNull writes an object with the members that write writes, or null unless it is set.
func (o *Buffer) objectOrNull(name string, set bool, write func()) {
	if !set {
		o.Null(name)
		return
	}
	o.Object(name)
	write()
	o.Close()
}
