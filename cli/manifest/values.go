package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/job"
)

// readOnly are the members that only answers have.
var readOnly = map[Kind][]string{
	Topic: membersBesideSettings[client.Topic](), Lane: membersBesideSettings[client.Lane](),
	Schedule: membersBesideSettings[client.Schedule](),
}

// membersBesideSettings returns the members of an answer's type, which embeds the type of the settings.
func membersBesideSettings[T any]() (names []string) {
	for f := range reflect.TypeFor[T]().Fields() {
		if !f.Anonymous {
			names = append(names, f.Tag.Get("json"))
		}
	}
	return names
}

// redacted is what answers have in place of secrets.
const redacted = "[redacted]"

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// decode reads a JSON object with its numbers as they are.
func decode(text []byte) (object map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&object); err != nil {
		return nil, fmt.Errorf("the answer is not JSON: %w", err)
	}
	return object, nil
}

// settings returns a document without what is not set and without what only answers have. It is a copy.
func settings(kind Kind, doc map[string]any) map[string]any {
	set := make(map[string]any)
	for name, value := range doc {
		if name != "job" || kind != Schedule { // there, null may differ from nothing
			value = withoutNull(value)
		}
		if value != nil && !slices.Contains(readOnly[kind], name) && !(name == "ordered" && value == false) {
			set[name] = value
		}
	}
	return set
}

// withoutNull returns a value without members that are null, and without objects that had no others.
func withoutNull(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	set := make(map[string]any)
	for name, value := range object {
		if value = withoutNull(value); value != nil {
			set[name] = value
		}
	}
	return set
}

// equal reports whether two values are the same JSON.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && (a == b || sameNumber(a, b))
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	default:
		return reflect.DeepEqual(a, b)
	}
}

// sameNumber compares numbers that are written differently, such as 1.0 and 1. Whole numbers that a float64 cannot hold
// differ.
func sameNumber(a, b json.Number) bool {
	const exact = 1 << 53
	x, err := a.Float64()
	y, err2 := b.Float64()
	return err == nil && err2 == nil && x == y && x < exact && x > -exact
}

// A Member is a member that differs. Old and New are nil where there is none.
type Member struct {
	Name string `json:"member"` // with dots
	Old  any    `json:"old"`
	New  any    `json:"new"`
}

// differences returns the members in which two objects differ, in order of name.
func differences(prefix string, before, after map[string]any) (found []Member) {
	names := maps.Clone(before)
	if names == nil {
		names = make(map[string]any)
	}
	maps.Copy(names, after)
	for _, name := range sortedKeys(names) {
		was, is := before[name], after[name]
		oldObject, _ := was.(map[string]any)
		newObject, _ := is.(map[string]any)
		switch {
		case equal(was, is):
		case (oldObject != nil || was == nil) && len(newObject) > 0,
			(newObject != nil || is == nil) && len(oldObject) > 0:
			found = append(found, differences(prefix+name+".", oldObject, newObject)...)
		default:
			found = append(found, Member{prefix + name, was, is})
		}
	}
	return found
}

// secretsIn returns the JSON pointers of texts that the server has stored as secrets, though the file has another text
// than the placeholder. Names of headers are compared without case.
func secretsIn(at string, want, stored any) (found []string) {
	switch want := want.(type) {
	case map[string]any:
		object, _ := stored.(map[string]any)
		for _, name := range sortedKeys(want) {
			for other, value := range object {
				if strings.EqualFold(name, other) {
					found = append(found, secretsIn(job.JSONPointer(at, name), want[name], value)...)
				}
			}
		}
	case []any:
		if stored == redacted {
			return []string{at}
		}
		list, _ := stored.([]any)
		for i := range min(len(want), len(list)) {
			found = append(found, secretsIn(at+"/"+strconv.Itoa(i), want[i], list[i])...)
		}
	case string:
		if stored == redacted && want != redacted {
			return []string{at}
		}
	}
	return found
}
