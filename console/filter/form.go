package filter

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// Form is the form of a filter, and the data of the template "filter".
type Form struct {
	Filter

	Errors web.FormErrors
	// Few are the names of the filters that are always seen. Without are those that the form lacks.
	Few, Without []string
	// Extra are fields of the page that follow the filters.
	Extra []web.Field

	written url.Values // what the reader wrote
	topics  []string   // that the token is restricted to; none: it sees all
}

// Read reads the filter of a query or a form. also are the names of the other parameters that the page has.
func Read(v *web.Visit, q url.Values, also ...string) *Form {
	f := &Form{written: q, topics: v.Who.Topics}
	var wrong map[string]string
	f.Filter, wrong = Parse(q, v.Now, also...)
	f.Errors.Heading = cannotSelect
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		if slices.Contains(Names(), name) {
			f.Errors.Add(name, wrong[name])
		} else {
			f.Refuse(name + ": " + wrong[name])
		}
	}
	return f
}

const cannotSelect = "The jobs cannot be selected"

// Refuse adds what is wrong with a parameter that is no field of the form.
func (f *Form) Refuse(sentence string) {
	f.Errors.General, f.Errors.Status = append(f.Errors.General, sentence), http.StatusUnprocessableEntity
}

// Fail adds what the API found wrong with the filter, or with parameters that also names. It returns an error that is
// not about what was sent.
func (f *Form) Fail(err error, also ...string) error {
	found, ok := web.FormErrorsOf(err, append(Names(), also...)...)
	if !ok {
		return err
	}
	f.Errors, f.Errors.Heading = found, cannotSelect
	return nil
}

// fields describe the filters.
var fields = map[string]web.Field{
	"topic": {Label: "Topic", Search: true},
	"lane":  {Label: "Lane", Placeholder: "pay.example.com:443"},
	"state": {Label: "State", Kind: "select", Options: []web.Link{
		{Text: "any"},
		{To: "scheduled,ready,running", Text: "unfinished"},
		{To: string(client.Scheduled), Text: "scheduled"},
		{To: string(client.Ready), Text: "ready"},
		{To: string(client.Running), Text: "running"},
		{To: string(client.Dead), Text: "dead"},
		{To: string(client.Delivered), Text: "delivered"},
		{To: string(client.Cancelled), Text: "cancelled"},
	}},
	"reason": {Label: "Reason", Kind: "select", Options: options("any", words.Reason, "exhausted", "expired", "max_age",
		"gave_up", "nonretryable", "blocked", "invalid", "cancelled")},
	"status": {Label: "Last answer", Placeholder: "503"},
	"error_class": {Label: "No answer", Kind: "select", Options: slices.Concat(
		[]web.Link{{Text: "or any"}, {To: client.ErrorAny, Text: "whatever the error"}},
		options("", words.ErrorClass, words.ErrorClasses()...)[1:],
		[]web.Link{{To: client.ErrorUnknown, Text: "no attempt ended"}})},
	"kind": {Label: "Kind", Kind: "select", Options: options("registered by clients", words.JobKind, "all", "callback",
		"backlog", "work", "schedule")},
	"id_prefix":      {Label: "Id begins with"},
	"created_after":  {Label: "Registered since"},
	"created_before": {Label: "Registered before"},
	"due_after":      {Label: "Due since"},
	"due_before":     {Label: "Due before"},
	"ended_after":    {Label: "Ended since", Placeholder: "90m"},
	"ended_before":   {Label: "Ended before", Placeholder: "15m"},
}

// options returns the codes of a filter, and what none of them means.
func options(none string, say func(string) string, codes ...string) []web.Link {
	all := []web.Link{{Text: none}}
	for _, code := range codes {
		all = append(all, web.Link{To: code, Text: code + ": " + say(code)})
	}
	return all
}

// Fields returns the fields that are always seen.
func (f *Form) Fields() (all []web.Field) {
	for _, name := range f.Few {
		all = append(all, f.shown(name, fields[name]))
	}
	return all
}

// More returns the other fields, which are seen when the reader asks for them.
func (f *Form) More() (all []web.Field) {
	for _, name := range Names() {
		if name != "label" && !slices.Contains(f.Few, name) && !slices.Contains(f.Without, name) {
			all = append(all, f.shown(name, fields[name]))
		}
	}
	for _, field := range f.Extra {
		all = append(all, f.shown(field.Name, field))
	}
	return all
}

// Open reports whether one of More is used or wrong.
func (f *Form) Open() bool {
	return slices.ContainsFunc(f.More(), func(field web.Field) bool { return field.Value+field.Error != "" })
}

// shown returns a field with what the reader wrote, or else with the value of the filter.
func (f *Form) shown(name string, field web.Field) web.Field {
	field.Name, field.Error = name, f.Errors.Of(name)
	field.Value = cmp.Or(strings.TrimSpace(strings.Join(f.written[name], ",")), f.Values().Get(name))
	isIt := func(o web.Link) bool { return o.To == field.Value }
	if field.Kind == "select" && !slices.ContainsFunc(field.Options, isIt) {
		field.Options = append(slices.Clone(field.Options), web.Link{To: field.Value, Text: field.Value})
	}
	if name == "topic" && len(f.topics) > 0 {
		field.Hint = "Your token is restricted to " + strings.Join(f.topics, ", ") + "."
	}
	return field
}

// Labels returns the inputs of labels: those of the filter, and an empty one.
func (f *Form) Labels() (labels []web.LabelInput) {
	texts := f.Label
	if f.Errors.Of("label") != "" {
		texts = f.written["label"]
	}
	for i, text := range append(slices.Clone(texts), "") {
		id := "f-label"
		if i > 0 {
			id += "-" + strconv.Itoa(i+1)
		}
		if f.Errors.Of("label") == "" { // else it is as it was written
			text = LabelText(text)
		}
		labels = append(labels, web.LabelInput{ID: id, Value: text})
	}
	return labels
}
