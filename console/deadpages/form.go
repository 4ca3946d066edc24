package deadpages

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/filter"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// selection is the filter of a page as its form shows it.
type selection struct {
	Filter filter.Filter
	Errors web.FormErrors
	Fields []web.Field
	// Labels are the inputs of labels: those of the filter, and an empty one.
	Labels []labelInput
	// More is the link that shows all filters; empty: they are shown.
	More string
	// Reset is the link that removes the filter; empty: there is none.
	Reset string
}

// labelInput is an input of a label. The inputs have one name, so their ids are counted.
type labelInput struct{ ID, Value string }

// described are the filters of the form, by name.
var described = map[string]web.Field{
	"topic":          {Label: "Topic", Search: true},
	"lane":           {Label: "Lane", Placeholder: "pay.example.com:443"},
	"state":          {Label: "State", Placeholder: "as the action has it"},
	"reason":         {Label: "Dead because", Kind: "select", Options: reasonOptions()},
	"status":         {Label: "Last answer", Placeholder: "503"},
	"kind":           {Label: "Kind", Kind: "select", Options: kindOptions()},
	"id_prefix":      {Label: "Id begins with"},
	"created_after":  {Label: "Registered after"},
	"created_before": {Label: "Registered before"},
	"due_after":      {Label: "Due after"},
	"due_before":     {Label: "Due before"},
	"ended_after":    {Label: "Ended after", Placeholder: "90m"},
	"ended_before":   {Label: "Ended before", Placeholder: "15m"},
}

func reasonOptions() []web.Link {
	options := []web.Link{{Text: "any reason"}}
	for _, code := range []string{"exhausted", "expired", "max_age", "gave_up", "nonretryable", "blocked", "invalid"} {
		options = append(options, web.Link{To: code, Text: words.Reason(code)})
	}
	return options
}

func kindOptions() []web.Link {
	options := []web.Link{{Text: "registered by clients"}}
	for _, code := range []string{"all", "callback", "backlog"} {
		options = append(options, web.Link{To: code, Text: words.JobKind(code)})
	}
	return options
}

// fewNames are the filters that the form always has, and moreNames the others.
var (
	fewNames  = []string{"topic", "lane", "reason", "status", "ended_after"}
	moreNames = []string{
		"ended_before", "id_prefix", "kind", "created_after", "created_before",
		"due_after", "due_before",
	}
)

// readSelection reads the filter of a query or a form. path is the page of the filter's form, which has the filters
// inputs besides fewNames and moreNames. other are the names of the other parameters that the query or the form may
// have.
func readSelection(v *web.Visit, path string, q url.Values, inputs, other []string) *selection {
	s := new(selection)
	var wrong map[string]string
	s.Filter, wrong = filter.Parse(q, v.Now, other...)
	for name, sentence := range wrong {
		s.Errors.Add(name, sentence)
	}
	if needsTopic(v) && s.Filter.Topic == "" && len(v.Who.Topics) == 1 && !strings.Contains(v.Who.Topics[0], "*") {
		s.Filter.Topic = v.Who.Topics[0]
	}
	s.setFields(v, path, q, inputs)
	return s
}

// setFields sets the inputs of the form. Fields without an input are shown as soon as they have a value. With errors
// all are shown: a link to the others would select without the parameters that are wrong.
func (s *selection) setFields(v *web.Visit, path string, q url.Values, also []string) {
	values := s.Filter.Values()
	all := s.Errors.Any() || q.Get("more") != "" || slices.ContainsFunc(moreNames,
		func(name string) bool { return q.Get(name) != "" })
	names := slices.Concat(fewNames, also)
	if all {
		names = append(names, moreNames...)
	} else {
		pairs := []string{"more", "1"}
		for _, name := range append(filter.Names(), "action") { // other fields may be secret
			for _, value := range q[name] {
				pairs = append(pairs, name, value)
			}
		}
		s.More = v.PathQuery(path, pairs...)
	}
	for _, name := range names {
		field := described[name]
		field.Name, field.Value, field.Error = name, values.Get(name), s.Errors.Of(name)
		if field.Error != "" {
			field.Value = q.Get(name)
		}
		if field.Kind == "select" &&
			!slices.ContainsFunc(field.Options, func(o web.Link) bool { return o.To == field.Value }) {
			field.Options = append(slices.Clone(field.Options), web.Link{To: field.Value, Text: field.Value})
		}
		s.Fields = append(s.Fields, field)
	}
	labels := q["label"]
	if s.Errors.Of("label") == "" {
		labels = s.Filter.Label
	}
	for i, label := range append(slices.Clone(labels), "") {
		s.Labels = append(s.Labels, labelInput{ID: "f-label-" + strconv.Itoa(i+1), Value: filter.LabelText(label)})
	}
	if needsTopic(v) {
		s.Fields[0].Hint = "Your token is restricted to " + strings.Join(v.Who.Topics, ", ") + "."
	}
}

// fail adds what the API finds wrong with the filter. It returns an error that is not about what was sent.
func (s *selection) fail(err error) error {
	found, ok := formErrors(err, filter.Names()...)
	if !ok {
		return err
	}
	for name, sentence := range found.Fields {
		s.Errors.Add(name, sentence)
	}
	s.Errors.General = append(s.Errors.General, found.General...)
	s.Errors.Status = found.Status
	for i := range s.Fields {
		s.Fields[i].Error = s.Errors.Of(s.Fields[i].Name)
	}
	return nil
}

// status returns the HTTP status of the page.
func (s *selection) status() int {
	if !s.Errors.Any() {
		return http.StatusOK
	}
	return s.Errors.Status
}

// pageOf returns the query of a page of the jobs that the filter selects.
func pageOf(f filter.Filter, cursor string, limit int, within time.Duration) client.Query {
	q := f.Query()
	q.Cursor, q.Limit, q.Within = cursor, limit, within
	return q
}

// groupQuery returns the query that counts what the filter selects.
func groupQuery(f filter.Filter, within time.Duration) client.Query {
	q := f.Query()
	q.Within = within
	return q
}
