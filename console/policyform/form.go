package policyform

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/ringback/ringback/console/web"
)

// Values are the texts of fields by name.
type Values map[string]string

// Form is a form of settings.
type Form[S any] struct {
	groups []Group
	fields []field[S]
	// allocate returns a copy in which all objects exist, trim sets those to nil that are empty.
	allocate func(S) S
	trim     func(*S)
	// nulls returns the names of the members of an object that get their default; of the settings themselves for an
	// empty name. nil: the object has no members that can be left out.
	nulls func(s *S, object string) *[]string
	// defaults are the settings that hold where none are set.
	defaults Values
}

// Group is a part of a form.
type Group struct {
	Title string
	// Intro is a sentence about the group.
	Intro string
	names []string
	// Fields are those of the group; Set reports whether one of them has a value or an error.
	Fields []web.Field
	Set    bool
}

// field is a field of a form.
type field[S any] struct {
	web.Field

	// lines reports whether the text is kept as it is, with its lines and spaces.
	lines bool
	// secret reports whether the text is not shown, not even to whom typed it.
	secret bool
	// essential reports whether the object of which the field is a member goes with it.
	essential bool
	get       func(*S) string
	// set sets the value of a text that is not empty. before are the settings that are changed.
	set   func(s, before *S, text string) error
	clear func(*S)
}

// Names returns the names of the fields.
func (f *Form[S]) Names() []string {
	names := make([]string, len(f.fields))
	for i := range f.fields {
		names[i] = f.fields[i].Name
	}
	return names
}

// Render returns the texts of all fields.
func (f *Form[S]) Render(s S) Values {
	s = f.allocate(s)
	values := make(Values, len(f.fields))
	for i := range f.fields {
		values[f.fields[i].Name] = f.fields[i].get(&s)
	}
	return values
}

// Typed returns the texts of fields in a form that was sent. A field that is missing has none.
func (f *Form[S]) Typed(form url.Values) Values {
	values := make(Values, len(f.fields))
	for i := range f.fields {
		field := &f.fields[i]
		if texts, ok := form[field.Name]; ok && len(texts) > 0 {
			values[field.Name] = field.clean(texts[0])
		}
	}
	return values
}

// lineBreaks replaces each kind of line break by LF: browsers send all of them as CRLF.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// clean returns a text as it is compared and parsed.
func (f *field[S]) clean(text string) string {
	text = lineBreaks.Replace(text)
	if !f.lines {
		text = strings.TrimSpace(text)
	}
	return text
}

// Change returns what changes settings to what was typed: only fields whose text differs. Fields that were not sent
// stay. changed are the names of those that differ, and of objects that are removed.
func (f *Form[S]) Change(set S, typed Values) (change S, changed []string, errs web.FormErrors) {
	set = f.allocate(set)
	var none S
	change = f.allocate(none)
	var cleared []string
	removed := f.removed(set, typed)
	for i := range f.fields {
		field := &f.fields[i]
		if object, _, _ := strings.Cut(field.Name, "."); removed[object] {
			if field.essential {
				cleared = append(cleared, object)
			}
			continue
		}
		before := field.get(&set)
		text, sent := typed[field.Name]
		if text = field.clean(text); !sent || text == field.clean(before) {
			continue
		}
		if text == "" {
			cleared = append(cleared, field.Name)
			continue
		}
		canonical := f.allocate(none)
		if err := field.set(&canonical, &canonical, text); err != nil {
			errs.Add(field.Name, err.Error())
			continue
		}
		if field.get(&canonical) == before {
			continue // another spelling
		}
		if err := field.set(&change, &set, text); err != nil {
			errs.Add(field.Name, err.Error())
			continue
		}
		changed = append(changed, field.Name)
	}
	f.trim(&change)
	f.clear(&change, set, typed, cleared, &errs)
	return change, append(changed, cleared...), errs
}

// clear adds fields that get their default to a change: an object of which nothing is left as a whole.
func (f *Form[S]) clear(change *S, set S, typed Values, cleared []string, errs *web.FormErrors) {
	objects := make(map[string]bool)
	for _, name := range cleared {
		object, member, nested := strings.Cut(name, ".")
		switch {
		case !nested:
			*f.nulls(change, "") = append(*f.nulls(change, ""), name)
		case f.isEmpty(object, set, typed):
			objects[object] = true
		default:
			nulls := f.nulls(change, object)
			if nulls == nil {
				errs.Add(name, "is required with the other fields of it")
				continue
			}
			*nulls = append(*nulls, member)
		}
	}
	*f.nulls(change, "") = append(*f.nulls(change, ""), slices.Sorted(maps.Keys(objects))...)
}

// removed returns the objects whose essential member was cleared.
func (f *Form[S]) removed(set S, typed Values) map[string]bool {
	objects := make(map[string]bool)
	for i := range f.fields {
		field := &f.fields[i]
		text, sent := typed[field.Name]
		if field.essential && sent && field.clean(text) == "" && field.get(&set) != "" {
			object, _, _ := strings.Cut(field.Name, ".")
			objects[object] = true
		}
	}
	return objects
}

// isEmpty reports whether nothing of an object is left.
func (f *Form[S]) isEmpty(object string, set S, typed Values) bool {
	for i := range f.fields {
		field := &f.fields[i]
		if !strings.HasPrefix(field.Name, object+".") {
			continue
		}
		text, sent := typed[field.Name]
		if !sent {
			text = field.get(&set)
		}
		if field.clean(text) != "" {
			return false
		}
	}
	return true
}

// Apply returns effective settings as they would be with what was typed over the settings that are set.
func (f *Form[S]) Apply(effective, set S, typed Values) (applied S, errs web.FormErrors) {
	var none S
	none, applied, set = f.allocate(none), f.allocate(effective), f.allocate(set)
	for i := range f.fields {
		field := &f.fields[i]
		text, sent := typed[field.Name]
		if text = field.clean(text); !sent || text == field.clean(field.get(&set)) {
			continue
		}
		if text == "" {
			field.clear(&applied)
			text = f.defaults[field.Name]
		}
		if text == "" {
			continue
		}
		if err := field.set(&applied, &none, text); err != nil {
			errs.Add(field.Name, err.Error())
		}
	}
	f.trim(&applied)
	return applied, errs
}

// Groups returns the form: its fields with their texts, what is wrong with them, and what holds where they are empty.
func (f *Form[S]) Groups(set, effective S, values Values, errs web.FormErrors) []Group {
	set, effective = f.allocate(set), f.allocate(effective)
	byName := make(map[string]web.Field, len(f.fields))
	for i := range f.fields {
		field := f.fields[i].Field
		field.Value, field.Error = values[field.Name], errs.Of(field.Name)
		if f.fields[i].secret && field.Value != "" {
			field.Value = ""
			if field.Error == "" {
				field.Error = "was not saved, and is not shown: paste it again"
			}
		}
		if field.Placeholder == "" {
			field.Placeholder = f.fields[i].get(&effective)
			if f.fields[i].get(&set) != "" {
				field.Placeholder = f.defaults[field.Name]
			}
		}
		if field.Kind == "select" && field.Placeholder != "" {
			field.Options = slices.Clone(field.Options)
			field.Options[0].Text = "default: " + optionText(field.Options, field.Placeholder)
		}
		byName[field.Name] = field
	}
	groups := slices.Clone(f.groups)
	for i := range groups {
		for _, name := range groups[i].names {
			field := byName[name]
			groups[i].Fields = append(groups[i].Fields, field)
			groups[i].Set = groups[i].Set || field.Value != "" || field.Error != ""
		}
	}
	return groups
}

// optionText returns the text of an option of a select.
func optionText(options []web.Link, value string) string {
	for _, o := range options {
		if o.To == value {
			return o.Text
		}
	}
	return value
}

// errZero is the error of a duration that must not be zero.
var errZero = errors.New("must be more than 0")
