package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
)

// FormErrors are what the API found wrong with a form: by field, and about the whole.
type FormErrors struct {
	// Fields are sentences by the name of the form's field.
	Fields map[string]string
	// General concerns no field of the form.
	General []string
	// Status is the API's.
	Status int
	// Heading says what did not happen; empty: "Nothing was changed".
	Heading string
}

// Any reports whether there are errors.
func (f FormErrors) Any() bool { return len(f.Fields)+len(f.General) > 0 }

// Of returns the sentence about a field; empty: it is right.
func (f FormErrors) Of(field string) string { return f.Fields[field] }

// Title returns the heading of the errors.
func (f FormErrors) Title() string { return cmp.Or(f.Heading, "Nothing was changed") }

// Add adds a sentence about a field; the first one about it stays.
func (f *FormErrors) Add(field, sentence string) {
	if f.Fields == nil {
		f.Fields = make(map[string]string)
	}
	if f.Fields[field] == "" {
		f.Fields[field] = sentence
	}
	if f.Status == 0 {
		f.Status = http.StatusUnprocessableEntity
	}
}

// RevisionField is the name of the hidden field of a form with the revision of what it showed; 0: nothing was stored.
const RevisionField = "revision"

// Revision returns the revision of what a form showed. A form without one is refused, because it would overwrite what
// somebody else has stored since. The error is a *client.Problem.
func (v *Visit) Revision() (int64, error) {
	revision, err := strconv.ParseInt(v.Form(RevisionField), 10, 64)
	if err != nil || revision < 0 {
		return 0, &client.Problem{
			Status: http.StatusUnprocessableEntity, Title: "The form is incomplete",
			Detail: "The form does not say which revision it showed, so nothing was changed: open the page again, " +
				"and send the form from there.",
		}
	}
	return revision, nil
}

// Condition returns the condition that what a form changes is as the form showed it. The error is that of Revision.
func (v *Visit) Condition() (client.Condition, error) {
	revision, err := v.Revision()
	if err == nil && revision == 0 {
		return client.IfNew(), nil
	}
	return client.IfRevision(revision), err
}

// Send sends a document to the API, if what is stored has a revision; 0: if nothing is stored. It returns the answer.
func (v *Visit) Send(method, path string, doc json.RawMessage, revision int64) (json.RawMessage, error) {
	header := http.Header{"If-None-Match": {"*"}}
	if revision != 0 {
		header = http.Header{"If-Match": {`"` + strconv.FormatInt(revision, 10) + `"`}}
	}
	return v.API.Call(v.Request.Context(),
		client.Request{Method: method, Path: path, Header: header, Body: doc, Once: true})
}

// ChangedSince says that somebody has changed something since the reader opened its form, when, and who; empty: that is
// not known.
func (v *Visit) ChangedSince(what, by string, at time.Time) string {
	if by == "" {
		return "Somebody changed " + what + " since you opened the form: the audit lines in the server's log name them."
	}
	return words.Sentence(by, "changed", what, "at", words.When(at, v.Now, nil)+", since you opened the form")
}

// Conflict makes errors those of a form over what somebody has changed since the reader opened it: what was typed is
// kept, and can be sent again with the new revision. changed says what has happened, what is the name of it as it is
// now, and differ are the names of the fields that sending the form again changes.
func (f *FormErrors) Conflict(changed, what string, differ []string) {
	f.Status = http.StatusPreconditionFailed
	f.General = append(f.General, changed+" What you typed is kept.")
	if len(differ) > 0 {
		f.General = append(f.General,
			words.Sentence("Compared with "+what+" now, saving again changes", words.ListAll(differ)))
	} else if len(f.Fields) == 0 {
		f.General = append(f.General, "What is stored is now as you typed it.")
	}
}

// fieldNames makes names of fields of JSON pointers. A form has the three members of a body in one field, and what bulk
// work selects and changes in one form.
var fieldNames = strings.NewReplacer("/body_text", ".body", "/body_base64", ".body", "/where/", ".", "/change/", ".",
	"/", ".")

// FormErrorsOf returns an error of the API as errors of a form, whose fields are those with a name of the API's field,
// with a dot for each slash: /ladder/0 is ladder.0, which also concerns the field ladder; the parameter ?rate is rate.
// ok is false for errors that are not about what was sent, and after which it may have been done: return these. An
// overloaded server has not done it.
func FormErrorsOf(err error, fields ...string) (f FormErrors, ok bool) {
	p, is := errors.AsType[*client.Problem](err)
	if !is || p.Status < 400 || p.Status >= 500 && p.Code != "overloaded" || p.Status == http.StatusUnauthorized ||
		p.Status == http.StatusNotFound {
		return f, false
	}
	known := make(map[string]bool, len(fields))
	for _, field := range fields {
		known[field] = true
	}
	for _, e := range p.Errors {
		name := strings.TrimLeft(fieldNames.Replace(e.Field), ".?")
		found := name
		for found != "" && !known[found] {
			found = found[:max(0, strings.LastIndexByte(found, '.'))]
		}
		switch found {
		case "":
			f.General = append(f.General, strings.TrimSpace(name+" "+e.Detail))
		case name:
			f.Add(found, e.Detail)
		default:
			f.Add(found, strings.TrimPrefix(name, found+".")+": "+e.Detail)
		}
	}
	if !f.Any() {
		f.General = append(f.General, p.Detail)
	}
	f.Status = p.Status
	return f, true
}
