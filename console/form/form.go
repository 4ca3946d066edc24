package form

import (
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/ringback/ringback/console/web"
)

// Texts are the texts of fields by their names; "" and a missing one are the same.
type Texts map[string]string

// Values is the JSON of members by the names of their fields. Those that are null are missing.
type Values map[string]json.RawMessage

// Field is a field of a form.
type Field struct {
	// Field is how it looks. Its name is that of the member. A text with Kind textarea keeps its lines and spaces.
	web.Field

	// Unset is the text of what the API answers where nothing is set.
	Unset string
	// Secret: the text is not shown, not even to whom typed it.
	Secret bool
	// Essential: without the member there is no object that it belongs to.
	Essential bool

	kind kind
}

// Group is a part of a form.
type Group struct {
	Title, Intro string
	Fields       []Field
}

// Form is a form.
type Form struct{ groups []Group }

// Of returns the form of a struct of package client. Members without a field get one in the last group.
func Of[T any](groups ...Group) *Form {
	f := &Form{}
	described := make(map[string]bool)
	for _, g := range groups {
		for _, field := range g.Fields {
			described[field.Name] = true
		}
	}
	kinds := make(map[string]kind)
	var rest []Field
	for _, m := range membersOf(reflect.TypeFor[T](), "", described) {
		kinds[m.name] = m.kind
		if !described[m.name] {
			label := strings.ReplaceAll(strings.ReplaceAll(m.name, ".", ": "), "_", " ")
			rest = append(rest, Field{Field: web.Field{Name: m.name, Label: strings.ToUpper(label[:1]) + label[1:]}})
		}
	}
	for i, g := range groups {
		g.Fields = slices.Clone(g.Fields)
		if i == len(groups)-1 {
			g.Fields = append(g.Fields, rest...)
		}
		for j := range g.Fields {
			field := &g.Fields[j]
			kind, is := kinds[field.Name]
			if !is {
				panic("form: " + reflect.TypeFor[T]().String() + " has no member " + field.Name)
			}
			field.kind = kind
			if kind == headersKind && field.Kind == "" {
				field.Kind, field.Rows = "textarea", 3
			}
		}
		f.groups = append(f.groups, g)
	}
	return f
}

// fields calls do for each field.
func (f *Form) fields(do func(*Field)) {
	for i := range f.groups {
		for j := range f.groups[i].Fields {
			do(&f.groups[i].Fields[j])
		}
	}
}

// Names returns the names of all fields.
func (f *Form) Names() (names []string) {
	f.fields(func(field *Field) { names = append(names, field.Name) })
	return names
}

// Values returns the members of a JSON object that have fields. raw may be empty.
func (f *Form) Values(raw json.RawMessage) Values {
	members := membersIn(raw)
	objects := make(map[string]Values)
	values := make(Values)
	f.fields(func(field *Field) {
		value := members[field.Name]
		if object, member, nested := strings.Cut(field.Name, "."); nested {
			if objects[object] == nil {
				objects[object] = membersIn(members[object])
			}
			value = objects[object][member]
		}
		if len(value) > 0 && value[0] != 'n' {
			values[field.Name] = value
		}
	})
	return values
}

// membersIn returns the members of an object; none of other JSON, which the API does not answer there.
func membersIn(raw json.RawMessage) (members Values) {
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return Values{}
	}
	return members
}

// Texts returns the texts of members.
func (f *Form) Texts(values Values) Texts {
	texts := make(Texts)
	f.fields(func(field *Field) {
		if text := field.text(values[field.Name]); text != "" {
			texts[field.Name] = text
		}
	})
	return texts
}

func (f *Field) text(value json.RawMessage) string {
	if text := f.kind.text(value); text != f.Unset {
		return text
	}
	return ""
}

// Typed returns the texts of a form that was sent; those that it lacks are as before.
func (f *Form) Typed(sent url.Values, before Texts) Texts {
	texts := maps.Clone(before)
	f.fields(func(field *Field) {
		if typed, ok := sent[field.Name]; ok && len(typed) > 0 {
			texts[field.Name] = field.clean(typed[0])
		}
	})
	return texts
}

// lineBreaks undoes what browsers do to the ends of lines.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// clean returns a text as it is read: of one that a browser sent, too.
func (f *Field) clean(text string) string {
	text = lineBreaks.Replace(text)
	if f.Kind != "textarea" {
		text = strings.TrimSpace(text)
	}
	return text
}

// Document returns the whole object that the texts say, and the names of what differs from what was stored. Members
// that do not differ are as they were stored; those that were removed are null. errs are texts that cannot be made
// JSON.
func (f *Form) Document(stored Values, texts Texts) (doc json.RawMessage, changed []string, errs web.FormErrors) {
	type object struct{ stored, empty, removed bool }
	objects := make(map[string]*object)
	f.fields(func(field *Field) {
		name, _, nested := strings.Cut(field.Name, ".")
		if !nested {
			return
		}
		o := objects[name]
		if o == nil {
			o = &object{empty: true}
			objects[name] = o
		}
		text := field.clean(texts[field.Name])
		o.stored = o.stored || stored[field.Name] != nil
		o.empty = o.empty && text == ""
		o.removed = o.removed || field.Essential && text == "" && stored[field.Name] != nil
	})
	members := make(Values)
	change := func(name string, value json.RawMessage) {
		members[name] = value
		if !slices.Contains(changed, name) {
			changed = append(changed, name)
		}
	}
	f.fields(func(field *Field) {
		name, was := field.Name, stored[field.Name]
		text := field.clean(texts[name])
		in, _, nested := strings.Cut(name, ".")
		switch o := objects[in]; {
		case nested && (o.removed || o.empty):
			if o.stored {
				change(in, null)
			}
		case text == field.clean(field.text(was)):
			if was != nil {
				members[name] = was
			}
		case text == "":
			change(name, null)
		default:
			value, err := field.kind.value(text, was)
			if err != nil {
				errs.Add(name, err.Error())
			}
			change(name, value)
		}
	})
	return members.object(), changed, errs
}

var null = json.RawMessage("null")

// Section is a group of fields to be shown.
type Section struct {
	Title, Intro string
	Fields       []web.Field
	// Set reports whether one of them has a value or an error.
	Set bool
}

// Sections returns the fields with texts and with what is wrong with these. effective is what holds where nothing is
// set; it is shown in empty fields.
func (f *Form) Sections(texts Texts, effective Values, errs web.FormErrors) []Section {
	sections := make([]Section, len(f.groups))
	for i, g := range f.groups {
		s := &sections[i]
		s.Title, s.Intro = g.Title, g.Intro
		for j := range g.Fields {
			field := g.Fields[j].shown(texts, effective, errs)
			s.Fields = append(s.Fields, field)
			s.Set = s.Set || field.Value != "" || field.Error != ""
		}
	}
	return sections
}

func (f *Field) shown(texts Texts, effective Values, errs web.FormErrors) web.Field {
	field := f.Field
	field.Value, field.Error = texts[f.Name], errs.Of(f.Name)
	if f.Secret && field.Value != "" {
		field.Value = ""
		field.Error = strings.TrimPrefix(field.Error+"; it was not saved, and is not shown: paste it again", "; ")
	}
	if text := f.text(effective[f.Name]); text != "" && field.Value == "" {
		field.Placeholder = text
		if field.Kind == "select" {
			field.Options = slices.Clone(field.Options)
			field.Options[0].Text = "default: " + f.option(text)
		}
	}
	return field
}

// option returns the text of an option.
func (f *Field) option(value string) string {
	for _, o := range f.Options {
		if o.To == value {
			return o.Text
		}
	}
	return value
}

// Row is a label and its text.
type Row struct {
	Label, Text string
	// Default reports whether it is not set.
	Default bool
}

// Table is the rows of a group.
type Table struct {
	Title string
	Rows  []Row
}

// Tables returns what holds, by groups; without what has no text, and without secrets.
func (f *Form) Tables(effective, set Values) (tables []Table) {
	for _, g := range f.groups {
		t := Table{Title: g.Title}
		for i := range g.Fields {
			field := &g.Fields[i]
			if text := field.text(effective[field.Name]); text != "" && !field.Secret {
				t.Rows = append(t.Rows, Row{field.Label, field.option(text), set[field.Name] == nil})
			}
		}
		if len(t.Rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables
}
