package request

import (
	"cmp"
	"net/http"
	"time"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// ofLanes are the fields of a job that an event does not have, because its lanes do.
var ofLanes = map[string]bool{"lane": true, "url": true, "method": true, "headers": true}

// eventFields yields the names of an event's fields.
func eventFields(yield func(string) bool) {
	for name := range JobFields {
		if !ofLanes[name] && !yield(name) {
			return
		}
	}
	yield("type")
}

// DecodeEvent reads an event, with the other parameters of DecodeJob.
func DecodeEvent(raw []byte, keys []string, now time.Time, maxBody int64) (store.EventSpec, *response.Problem) {
	var f jobForm
	var e store.EventSpec
	for name, value := range f.object("", raw) {
		field, known := JobFields[string(name)]
		switch {
		case string(name) == "type" && !isNull(value):
			e.Type = f.name("/type", value)
		case string(name) == "type":
		case ofLanes[string(name)]:
			f.AddError(field.pointer, "belongs to the lanes that subscribe")
		case !known:
			f.unknownField("", name, "an event", eventFields)
		case isNull(value) && !field.null: // as if left out
		default:
			field.read(&f, field.pointer, value)
		}
	}
	f.readKey(keys)
	e.ID, f.ID = f.ID, ""
	for _, fault := range job.Check(e) {
		if f.keyed && fault.Field == "/id" {
			fault.Field = IdempotencyKey
		}
		f.errors = append(f.errors, fault)
	}
	p := f.check(now, maxBody)
	canonicalHeaders(f.OnDelivered, f.OnDead)
	e.Job = f.New
	return e, p
}

// MaxEvents bounds the events of a batch.
const MaxEvents = 1000

// DecodeEvents returns the array of events in a batch, and their number.
func DecodeEvents(text []byte) (all []byte, n int, p *response.Problem) {
	return decodeArray(text, "events", MaxEvents)
}

// checkEventType checks the type of events; empty: none.
func (d *decoder) checkEventType(field, name string) {
	if name != "" && !policy.IsEventType(name) {
		d.AddError(field, "must be the type of events, without *")
	}
}

// EventType reads the parameter type.
func (q *Query) EventType() string {
	name := q.Get("type")
	q.checkEventType("?type", name)
	return name
}

const (
	// testType is the type of a test event, unless a request names another.
	testType = "test"
	// testWait is how long the answer to a test waits for its end, unless a request says otherwise.
	testWait = 20 * time.Second
)

// Test reads the parameters of a test of a lane.
func Test(r *http.Request) (eventType string, wait time.Duration, err error) {
	q := NewQuery(r)
	eventType = cmp.Or(q.EventType(), testType)
	wait, ok := q.wait()
	if !ok {
		wait = testWait
	}
	return eventType, wait, q.Err()
}

// EventFilter reads the parameters of a list of events.
func (q *Query) EventFilter() store.Filter {
	f := q.selection(states)
	if name := q.EventType(); name != "" {
		f.Labels = append(f.Labels, store.Label{Key: job.LabelEvent, Value: name})
	}
	q.cursor(&f)
	return f
}
