package response

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Writers are found when a type is first written, so a member without one would panic in an answer.
func TestMembers_HaveAWriterAndANameOfTheirOwn(t *testing.T) {
	for _, of := range []reflect.Type{
		reflect.TypeFor[access.Token](), reflect.TypeFor[access.Principal](), reflect.TypeFor[job.Namespace](),
		reflect.TypeFor[policy.Topic](), reflect.TypeFor[policy.Lane](), reflect.TypeFor[policy.Update](),
		reflect.TypeFor[policy.Secret](), reflect.TypeFor[store.PublicKey](), reflect.TypeFor[store.Schedule](),
		reflect.TypeFor[job.Job](), reflect.TypeFor[job.Event](), reflect.TypeFor[job.Remedy](),
		reflect.TypeFor[job.Durability](), reflect.TypeFor[store.Work](), reflect.TypeFor[store.TopicStats](),
		reflect.TypeFor[store.TroubledLane](),
	} {
		written(t, func(o *Buffer) { o.Members(reflect.New(of).Interface()) })
		requireMembers(t, of)
	}
}

// requireMembers requires that all members of a type, and of those in it, have a writer and a name of their own.
func requireMembers(t *testing.T, of reflect.Type) {
	t.Helper()
	names := make(map[string]bool)
	for _, m := range job.MembersOf(of).All {
		require.False(t, names[m.Name], "%s has the member %s twice", of, m.Name)
		names[m.Name] = true
		inner := m.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if _, own := valueWriters[inner]; !own && inner.Kind() == reflect.Struct {
			require.NotEmpty(t, planOf(inner), "%s has no members for the API", inner)
			requireMembers(t, inner)
		}
	}
}
