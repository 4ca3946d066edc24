package client

import (
	"net/http"
	"strconv"
)

// Condition is a condition of a change; the zero value: none. If it does not hold, nothing changes, and the error is
// ErrRevision.
type Condition struct{ name, value string }

// IfRevision is the condition that the job or the settings have a revision, as they had when they were read.
func IfRevision(revision int64) Condition {
	return Condition{"If-Match", `"` + strconv.FormatInt(revision, 10) + `"`}
}

// IfStored is the condition that there are settings of the topic, lane, schedule or namespace.
func IfStored() Condition { return Condition{"If-Match", "*"} }

// IfNew is the condition that there are no settings of the topic, lane, schedule or namespace yet.
func IfNew() Condition { return Condition{"If-None-Match", "*"} }

// conditionHeader returns the headers of conditions; nil without any.
func conditionHeader(conditions []Condition) http.Header {
	var h http.Header
	for _, c := range conditions {
		if c.name != "" {
			if h == nil {
				h = make(http.Header)
			}
			h.Set(c.name, c.value)
		}
	}
	return h
}
