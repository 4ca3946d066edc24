package job

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Member is a member of a resource in the API: a field of a Go struct with the tag api, which has the member's name and
// perhaps options, separated by commas. Fields without the tag are not in the API; those of an embedded struct without
// the tag are as if they were in the struct that embeds it.
//
// The comment of the field is the member's text for users: make generate writes it to openapi.yaml, the tables of the
// docs and the flags of commands. It is the first paragraph, without the name of the field and is or are behind it; its
// first sentence stands alone in a flag's help. It holds for requests and answers alike. In it, null is the zero value,
// names and values of the API are in backquotes, and the end may be "Default: …" with what applies if a request that
// makes something has no value; what follows a semicolon there is not for flags. Bounds are those of the tag validate.
// What only programmers need is another paragraph, or stands behind the field.
//
//	inline    the members of the field, a struct, are members of its parent
//	always    answers show the zero value, which is null without the option
//	or=TEXT   answers show the text for the zero value
//	answer    only answers have it
//	size      a number of bytes, such as "256MiB"
//	zero      0 is a value of requests, not out of range; of a field that is a pointer it always is
//	empty     the empty text is a value of requests
//	default   null in a request is the default, as if the member was left out
//	editable  an edit of a job may change it
//	nullable  the same, also to null
type Member struct {
	Name   string
	Offset uintptr // of the field in the struct
	Type   reflect.Type

	index   []int
	options []string
}

// Is reports whether a member has an option.
func (m *Member) Is(option string) bool { return slices.Contains(m.options, option) }

// Or returns the text that answers show for the zero value; empty: none.
func (m *Member) Or() string {
	for _, option := range m.options {
		if text, ok := strings.CutPrefix(option, "or="); ok {
			return text
		}
	}
	return ""
}

// Of returns the member's field in a struct.
func (m *Member) Of(v reflect.Value) reflect.Value { return v.FieldByIndex(m.index) }

var membersByType sync.Map // of *Members

// Members are the members of a struct, in the order of its fields.
type Members struct {
	All    []Member
	byName map[string]*Member
}

// MembersOf returns the members of a struct. They must not be changed.
func MembersOf(t reflect.Type) *Members {
	if known, ok := membersByType.Load(t); ok {
		members, _ := known.(*Members)
		return members
	}
	members := &Members{All: appendMembers(nil, t, nil, 0), byName: make(map[string]*Member)}
	for i := range members.All {
		members.byName[members.All[i].Name] = &members.All[i]
	}
	membersByType.Store(t, members)
	return members
}

// Named returns the member with a name; nil: there is none.
func (m *Members) Named(name string) *Member { return m.byName[name] }

// Settable yields the names of the members that requests may set.
func (m *Members) Settable(yield func(string) bool) {
	for i := range m.All {
		if !m.All[i].Is("answer") && !yield(m.All[i].Name) {
			return
		}
	}
}

func appendMembers(all []Member, t reflect.Type, index []int, offset uintptr) []Member {
	for f := range t.Fields() {
		at := append(slices.Clip(index), f.Index...)
		name, options := memberOf(f)
		switch {
		case name != "":
			all = append(all, Member{name, offset + f.Offset, f.Type, at, options})
		case f.Anonymous && f.Type.Kind() == reflect.Struct, slices.Contains(options, "inline"):
			all = appendMembers(all, f.Type, at, offset+f.Offset)
		}
	}
	return all
}

// memberOf returns the name and the options of a field with the tag api; without one no name.
func memberOf(f reflect.StructField) (name string, options []string) {
	parts := strings.Split(f.Tag.Get("api"), ",")
	return parts[0], parts[1:]
}
