package livetail

import (
	"encoding/json"
	"time"

	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Update is an attempt or a change. Its JSON form is what processes send each other.
type Update struct {
	At        time.Time         `json:"at"`
	Namespace string            `json:"namespace"`
	Topic     string            `json:"topic"`
	Lane      string            `json:"lane,omitempty"` // empty: the change of a topic
	ID        string            `json:"id,omitempty"`   // of the job; empty: the change of a topic or a lane
	Labels    map[string]string `json:"labels,omitempty"`
	// Attempt is the attempt, with the URL of the request and without the header and the body of the response; nil: a
	// change.
	Attempt *job.Attempt `json:"attempt,omitempty"`
	// Late is the time from when the attempt was due to its start, from 0; nil: not known, or nothing was tried.
	Late   *time.Duration `json:"late,omitempty"`
	Change Change         `json:"change,omitzero"`
}

// Change is what was done to a job, a lane or a topic.
type Change struct {
	Kind   ChangeKind    `json:"kind"`
	Fields []string      `json:"fields,omitempty"` // of an edit
	Actor  string        `json:"actor,omitempty"`
	Reason policy.Reason `json:"reason,omitempty"` // of Dead
}

// ChangeKind is the kind of a change: that of a job's event, or one of those below.
type ChangeKind string

// Kinds of changes.
const (
	Dead    ChangeKind = "dead"    // a job died without an attempt
	Paused  ChangeKind = "paused"  // of a topic or a lane
	Resumed ChangeKind = "resumed" // of a topic or a lane
)

// verdict returns the verdict that the update has for a filter.
func (e *Update) verdict() string {
	switch {
	case e.Attempt != nil:
		return e.Attempt.Verdict
	case e.Change.Kind == Dead:
		return policy.Dead.String()
	default:
		return ""
	}
}

// Filter selects updates of a namespace. Empty fields select all.
type Filter struct {
	Namespace string `json:"namespace"`
	// Topic is the name of a topic; empty: all but Ringback's own.
	Topic string `json:"topic,omitempty"`
	// Topics are the topics that the listener may see.
	Topics access.Topics `json:"topics,omitempty"`
	// Lane is the name of a lane. The changes of its topic are selected, too.
	Lane string `json:"lane,omitempty"`
	// Verdict selects attempts, and of the changes deaths without an attempt.
	Verdict string `json:"verdict,omitempty"`
}

// match reports whether the filter selects an update.
func (f *Filter) match(e *Update) bool {
	return e.Namespace == f.Namespace &&
		(e.Topic == f.Topic || f.Topic == "" && !job.IsReserved(e.Topic)) && f.Topics.Match(e.Topic) &&
		(f.Lane == "" || e.Lane == f.Lane || e.Lane == "") &&
		(f.Verdict == "" || e.verdict() == f.Verdict)
}

// announcement is what a listener tells the publishers.
type announcement struct {
	Name   string `json:"name"`
	Filter Filter `json:"filter"`
}

// message is what a publisher appends to the tail.
type message struct {
	From string `json:"from"` // the publisher
	N    uint64 `json:"n"`    // of the publisher's messages, from 1: a repeated one has the same number
	// Matched counts for each listener the updates that it wants. Those that it did not get were skipped.
	Matched map[string]count  `json:"matched"`
	Updates []addressedUpdate `json:"updates,omitempty"`
}

// count is a number of updates that a publisher has counted since its message with the number Since.
type count struct {
	Since uint64 `json:"since"`
	N     uint64 `json:"n"`
}

// addressedUpdate is an update for some listeners.
type addressedUpdate struct {
	To     []string        `json:"to"`
	Update json.RawMessage `json:"update"`
}
