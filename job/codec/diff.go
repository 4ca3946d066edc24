package codec

import (
	"bytes"
	"slices"

	"github.com/ringback/ringback/job"
)

// Change returns a specification with the values that another has of some fields, named as by Diff. "body" is the body
// and its kind.
func Change(s, from *job.Spec, names []string) (job.Spec, error) {
	changed, values := job.Spec{ID: s.ID, Queue: s.Queue, Body: s.Body}, *from
	values.Queue = s.Queue // the form of a URL depends on the lane
	var b []byte
	for i := range specFields {
		of := s
		if name := specFields[i].name; name != "" && slices.Contains(names, name) {
			of = &values
		}
		b = appendFields(b, specFields[i:i+1], of)
	}
	if slices.Contains(names, "body") {
		changed.Body = from.Body
	}
	err := DecodeSpec(append(b, s.Unknown...), &changed, nil)
	return changed, err
}

// Diff returns the names, as in the API, of the fields in which two specifications differ, without their ids and
// queues.
func Diff(a, b job.Spec) []string {
	a.Queue, b.Queue = job.Queue{}, job.Queue{} // the form of a URL depends on the lane
	var names []string
	var textA, textB []byte
	for _, f := range specFields {
		if f.name == "" {
			continue
		}
		textA, textB = f.append(textA[:0], &a), f.append(textB[:0], &b)
		if !bytes.Equal(textA, textB) || f.name == "body" && !bytes.Equal(a.Body, b.Body) {
			names = append(names, f.name)
		}
	}
	return names
}
