package request

import (
	"reflect"
	"testing"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Readers are found when a member is read, so a member without one would panic at a client's request.
func TestMembers_HaveAReader(t *testing.T) {
	for _, of := range []reflect.Type{
		reflect.TypeFor[policy.Topic](), reflect.TypeFor[policy.Lane](), reflect.TypeFor[policy.Callback](),
		reflect.TypeFor[policy.Backlog](), reflect.TypeFor[policy.Success](), reflect.TypeFor[policy.Breaker](),
		reflect.TypeFor[policy.Retention](), reflect.TypeFor[store.ScheduleSettings](),
		reflect.TypeFor[store.CatchUp](), reflect.TypeFor[job.Spec](), reflect.TypeFor[job.Namespace](),
		reflect.TypeFor[job.Quota](),
	} {
		members := job.MembersOf(of).All
		for i := range members {
			m := &members[i]
			for _, text := range []string{`"x"`, "1", "true", "[]", "{}", "null"} {
				to, from := reflect.New(of).Elem(), source{stored: reflect.New(of).Elem()}
				if !m.Is("answer") {
					new(decoder).readMember(m, "/"+m.Name, []byte(text), m.Of(to), from.of(m))
				}
			}
		}
	}
}
