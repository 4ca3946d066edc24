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
	// Replaces: what is written replaces all headers that are stored, rather than those that it names.
	Replaces bool

	kind kind
	// member is that with the value: of the fields that say what a body is, the body.
	member string
}

// Group is a part of a form.
type Group struct {
	Title, Intro string
	Fields       []Field
}

// Form is a form.
type Form struct{ groups []Group }

// Of returns the form of a struct of package client. Members without a field get one: in the last group that has a
// field of the same object.
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
		for _, field := range rest {
			if groupOf(field, groups) == i {
				g.Fields = append(g.Fields, field)
			}
		}
		for j := range g.Fields {
			field := &g.Fields[j]
			kind, is := kinds[field.Name]
			if !is {
				panic("form: " + reflect.TypeFor[T]().String() + " has no member " + field.Name)
			}
			field.kind, field.member = kind, field.Name
			if object := field.object(); kind == bodyAsKind || kind == contentTypeKind {
				field.member = object + "body"
			}
			if (kind == headersKind || kind == labelsKind) && field.Kind == "" {
				field.Kind, field.Rows = "textarea", 3
			}
		}
		f.groups = append(f.groups, g)
	}
	return f
}

// groupOf returns the group of a field that none has.
func groupOf(f Field, groups []Group) int {
	for i, g := range slices.Backward(groups) {
		if slices.ContainsFunc(g.Fields, func(other Field) bool { return other.object() == f.object() }) {
			return i
		}
	}
	return len(groups) - 1
}

// object returns the name of the object that the member belongs to, with a full stop; empty: it is that of the form.
func (f *Field) object() string { return f.Name[:strings.LastIndexByte(f.Name, '.')+1] }

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
	objects := map[string]Values{"": membersIn(raw)}
	values := make(Values)
	f.fields(func(field *Field) {
		object := field.object()
		if objects[object] == nil {
			objects[object] = membersIn(objects[""][strings.TrimSuffix(object, ".")])
		}
		value := objects[object][strings.TrimPrefix(field.Name, object)]
		switch {
		case field.kind == bodyKind:
			value = bodyIn(objects[object])
		case field.kind == bodyAsKind || field.kind == contentTypeKind || isNull(value) && field.kind != callbackKind:
			return
		}
		if value != nil {
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
		if text := field.text(values); text != "" {
			texts[field.Name] = text
		}
	})
	return texts
}

func (f *Field) text(values Values) string {
	if text := f.kind.text(values[f.member]); text != f.Unset {
		return text
	}
	return ""
}

// Typed returns the texts of a form that was sent; those that it lacks are as before.
func (f *Form) Typed(sent url.Values, before Texts) Texts {
	texts := make(Texts)
	maps.Copy(texts, before)
	f.fields(func(field *Field) {
		if typed, ok := sent[field.Name]; ok && len(typed) > 0 {
			texts[field.Name] = field.clean(typed[0])
		}
	})
	return texts
}

// browsed does to stored texts what browsers do, and undoes what they do to the ends of lines. HTML has no NUL.
var browsed = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD")

// clean returns a text as it is read: of one that a browser sent, too.
func (f *Field) clean(text string) string {
	text = browsed.Replace(text)
	if f.Kind != "textarea" {
		text = strings.TrimSpace(text)
	}
	return text
}

// Document returns the whole object that the texts say, and the names of what differs from what was stored. Members
// that do not differ are as they were stored; those that were removed are null. errs are texts that cannot be made
// JSON.
func (f *Form) Document(stored Values, texts Texts) (doc json.RawMessage, changed []string, errs web.FormErrors) {
	members, changes, changed, errs := f.compare(stored, texts)
	maps.Copy(members, changes)
	return members.object(), changed, errs
}

// Changes returns an object of the members that differ from what was stored, as a PATCH has them. A body that was
// removed is an empty one, because a job does not lose its body.
func (f *Form) Changes(stored Values, texts Texts) (doc json.RawMessage, changed []string, errs web.FormErrors) {
	_, changes, changed, errs := f.compare(stored, texts)
	if slices.Contains(changed, "body") && changes["body"] == nil && changes["body_base64"] == nil &&
		changes["body_text"] == nil {
		changes["body_text"] = quote("")
	}
	return changes.object(), changed, errs
}

// object is what becomes of an object: it is stored, its fields are empty, or it is removed as an essential one is.
type object struct{ stored, empty, removed bool }

// objects returns the objects that have members with fields.
func (f *Form) objects(stored Values, texts Texts) map[string]*object {
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
	return objects
}

// compare returns the members that are as they were stored, those that are not, and the names of these.
func (f *Form) compare(stored Values, texts Texts) (same, changes Values, changed []string, errs web.FormErrors) {
	objects := f.objects(stored, texts)
	same, changes = make(Values), make(Values)
	change := func(name string, value json.RawMessage) {
		if value != nil {
			changes[name] = value
		}
		if !slices.Contains(changed, name) {
			changed = append(changed, name)
		}
	}
	f.fields(func(field *Field) {
		name, was := field.Name, stored[field.Name]
		text := field.clean(texts[name])
		in, _, nested := strings.Cut(name, ".")
		o := objects[in]
		switch {
		case nested && (o.removed || o.empty):
			if o.stored {
				change(in, null)
			}
			return
		case nested && same[in] == nil:
			same[in] = json.RawMessage("{}") // if no member is added
		}
		switch {
		case field.kind == bodyAsKind || field.kind == contentTypeKind: // they belong to the body
		case field.kind == bodyKind:
			members, differs, err := readBody(field.object(), text, texts, was)
			if err != nil {
				errs.Add(name, err.Error())
			}
			to := same
			if differs {
				change(name, nil)
				to = changes
			}
			for member, value := range members {
				to[field.object()+member] = value
			}
		case text == field.clean(field.text(stored)):
			if was != nil {
				same[name] = was
			}
		case text == "" && field.kind == callbackKind: // null switches it off
			change(name, nil)
		case text == "":
			change(name, null)
		default:
			value, err := field.kind.value(text, was, field.Replaces)
			switch {
			case err != nil:
				errs.Add(name, err.Error())
				change(name, nil)
			case was != nil && field.kind.text(value) == field.kind.text(was): // written in another way
				same[name] = was
			default:
				change(name, value)
			}
		}
	})
	return same, changes, changed, errs
}

var null = json.RawMessage("null")
