package schedules_test

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/schedules"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
)

// rewrite changes the stored document of the schedule, and the progress in its internal job.
func rewrite(t *testing.T, s store.Store, value func([]byte) []byte, progress func([]byte) []byte) {
	t.Helper()
	key := store.DocumentKey{Kind: store.KindSchedule, Namespace: ns, Name: name}
	docs, err := s.GetDocuments(t.Context(), []store.DocumentKey{key})
	require.NoError(t, err)
	docs[0].Value = value(docs[0].Value)
	_, err = s.PutDocument(t.Context(), store.NewToken(), docs[0], policy.Limits{})
	require.NoError(t, err)
	r := router.New(s)
	page, err := r.List(t.Context(), store.Filter{Namespace: ns, Topic: job.ScheduleTopic, Limit: 1})
	require.NoError(t, err)
	j, err := r.Get(t.Context(), page.Jobs[0].Ref())
	require.NoError(t, err)
	j.Body = progress(j.Body)
	_, err = r.Replace(t.Context(), j.Ref(),
		store.Replacement{Kind: job.EventEdited, Fields: []string{"body"}, Spec: &j.Spec, IfVersion: j.Version})
	require.NoError(t, err)
}

// without removes members of a JSON object.
func without(t *testing.T, members ...string) func([]byte) []byte {
	t.Helper()
	return func(text []byte) []byte {
		var value map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(text, &value))
		for _, member := range members {
			delete(value, member)
		}
		text, err := json.Marshal(value)
		require.NoError(t, err)
		return text
	}
}

// What a program stored that did not know periods loses no tick, and repeats none.
func TestPeriods_GoOnFromDocumentsWithoutThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		stop := start(t, s, new(registrar))
		created := time.Now()
		put(t, s, every(time.Minute))
		time.Sleep(5*time.Minute + time.Second)
		stop()
		synctest.Wait()
		rewrite(t, s, without(t, "Since", "Before"), without(t, "since", "seen"))
		time.Sleep(10 * time.Second)
		change(t, s, pause)
		time.Sleep(2 * time.Minute)
		change(t, s, resume)
		time.Sleep(time.Minute)
		start(t, s, new(registrar))
		time.Sleep(time.Minute)
		want := between(created, time.Now(), time.Minute)
		require.Equal(t, slices.Delete(want, 5, 7), ticksOf(t, s))
	})
}

// A document that moves to another store gets another revision, and its changes keep their times.
func TestPortable_KeepsTheTimeOfTheLastChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		stop := start(t, s, new(registrar))
		created := time.Now()
		put(t, s, every(10*time.Second))
		time.Sleep(21 * time.Second)
		stop()
		synctest.Wait()
		time.Sleep(10 * time.Second)
		change(t, s, pause)
		time.Sleep(10 * time.Second)
		key := store.DocumentKey{Kind: store.KindSchedule, Namespace: ns, Name: name}
		docs, err := s.GetDocuments(t.Context(), []store.DocumentKey{key})
		require.NoError(t, err)
		value, err := schedules.Portable(&docs[0])
		require.NoError(t, err)
		again, err := schedules.Portable(&store.Document{Key: key, Revision: 1, Value: value})
		require.NoError(t, err)
		require.Equal(t, string(value), string(again))
		_, err = s.PutDocument(t.Context(), store.NewToken(), store.Document{Key: key, Value: value}, policy.Limits{})
		require.NoError(t, err)
		start(t, s, new(registrar))
		time.Sleep(10 * time.Second)
		require.Equal(t, between(created, created.Add(31*time.Second), 10*time.Second), ticksOf(t, s))
	})
}
