package codec

import (
	"bytes"

	"github.com/ringback/ringback/job"
)

// Diff returns the names, as in the API, of the fields in which two specifications differ, without their ids and queues.
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
