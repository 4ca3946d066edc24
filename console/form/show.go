package form

import (
	"slices"
	"strings"

	"github.com/ringback/ringback/console/web"
)

// Section is a group of fields to be shown.
type Section struct {
	Title, Intro string
	Fields       []web.Field
	// Set reports whether one of them has a value or an error.
	Set bool
}

// IsWide reports whether a field has several lines.
func (s Section) IsWide() bool {
	return slices.ContainsFunc(s.Fields, func(f web.Field) bool { return f.Kind == "textarea" })
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

// Fields returns fields as Sections does, in the order of names.
func (f *Form) Fields(texts Texts, errs web.FormErrors, names ...string) []web.Field {
	fields := make([]web.Field, len(names))
	f.fields(func(field *Field) {
		if i := slices.Index(names, field.Name); i >= 0 {
			fields[i] = field.shown(texts, nil, errs)
		}
	})
	return fields
}

func (f *Field) shown(texts Texts, effective Values, errs web.FormErrors) web.Field {
	field := f.Field
	field.Value, field.Error = texts[f.Name], errs.Of(f.Name)
	if f.Secret && field.Value != "" {
		field.Value = ""
		field.Error = strings.TrimPrefix(field.Error+"; it was not saved, and is not shown: paste it again", "; ")
	}
	if f.kind == bodyAsKind && field.Value == AsKept {
		field.Options = append(slices.Clone(field.Options), web.Link{To: AsKept, Text: "the one that the job has"})
	}
	if text := f.text(effective); text != "" && field.Value == "" {
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

// Tables returns what holds, by groups; without what has no text, without secrets, and without bodies.
func (f *Form) Tables(effective, set Values) (tables []Table) {
	for _, g := range f.groups {
		t := Table{Title: g.Title}
		for i := range g.Fields {
			field := &g.Fields[i]
			hidden := field.Secret || field.kind == bodyKind || field.kind == bodyAsKind
			if text := field.text(effective); text != "" && !hidden {
				t.Rows = append(t.Rows, Row{field.Label, field.option(text), set[field.member] == nil})
			}
		}
		if len(t.Rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables
}
