package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
)

// nothing is the text of an empty list, unlike one that is not set.
const nothing = "none"

// kind is how a text is made JSON.
type kind int

const (
	textKind    kind = iota
	numberKind       // also of durations, which are numbers of seconds or texts
	booleanKind      // false is as if not set
	listKind         // of texts
	numbersKind      // a list of numbers or texts
	headersKind      // a line for each value
	labelsKind       // a line for each label
	timeKind
	callbackKind // a URL, none, which is null, or an object as JSON
	bodyKind
	bodyAsKind      // how the body is written
	contentTypeKind // of the body
)

// member is a member of a struct.
type member struct {
	name string
	kind kind
}

// membersOf returns the members of a struct, and those of its objects unless the object is described as one field.
func membersOf(of reflect.Type, prefix string, described map[string]bool) (members []member) {
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		t := f.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		name = prefix + name
		if strings.Contains(f.Tag.Get("wire"), "payload") {
			members = append(members, member{name, bodyKind}, member{name + "_as", bodyAsKind})
			continue
		}
		if name == prefix+"content_type" {
			members = append(members, member{name, contentTypeKind})
			continue
		}
		if t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]() && !described[name] {
			members = append(members, membersOf(t, name+".", described)...)
			continue
		}
		members = append(members, member{name, kindOf(t)})
	}
	return members
}

func kindOf(t reflect.Type) kind {
	switch t {
	case reflect.TypeFor[client.Headers]():
		return headersKind
	case reflect.TypeFor[map[string]string]():
		return labelsKind
	case reflect.TypeFor[time.Time]():
		return timeKind
	case reflect.TypeFor[[]time.Duration]():
		return numbersKind
	}
	switch t.Kind() {
	case reflect.Bool:
		return booleanKind
	case reflect.Int, reflect.Int64, reflect.Float64:
		return numberKind
	case reflect.Slice:
		return listKind
	case reflect.Struct:
		return callbackKind
	}
	return textKind
}

// value returns the JSON of a text that is not empty. stored is what it changes, or replaces.
func (k kind) value(text string, stored json.RawMessage, replaces bool) (json.RawMessage, error) {
	switch k {
	case numberKind:
		return numberOf(text), nil
	case booleanKind:
		if text == "true" || text == "false" {
			return json.RawMessage(text), nil
		}
	case listKind, numbersKind:
		element := quote
		if k == numbersKind {
			element = numberOf
		}
		return listOf(text, element), nil
	case headersKind:
		return headersOf(text, stored, replaces)
	case labelsKind:
		return labelsOf(text)
	case timeKind:
		if t, ok := words.ParseTime(text); ok {
			text = t.Format(time.RFC3339Nano)
		}
	case callbackKind:
		switch {
		case strings.EqualFold(text, nothing):
			return null, nil
		case strings.HasPrefix(text, "{"):
			return jsonOf(text)
		}
	}
	return quote(text), nil
}

// text returns the text of a value; empty without one.
func (k kind) text(value json.RawMessage) string {
	switch {
	case k == callbackKind:
		return callbackText(value)
	case k >= bodyKind:
		return textOfBody(value, k)
	case isNull(value), k == booleanKind && string(value) == "false":
		return ""
	case k == headersKind:
		return headersText(value)
	case k == labelsKind:
		return labelsText(value)
	case k == timeKind:
		return timeText(unquote(value))
	case value[0] == '[':
		if elements := textsOf(value); len(elements) > 0 {
			return strings.Join(elements, ", ")
		}
		return nothing
	case value[0] == '"':
		return unquote(value)
	}
	return string(value)
}

func isNull(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

func quote(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a text has always JSON
	return raw
}

func unquote(raw json.RawMessage) (text string) {
	if json.Unmarshal(raw, &text) != nil { // a number
		return string(raw)
	}
	return text
}

// numberOf returns a number as it is. Anything else is a text, which the API reads, or refuses.
func numberOf(text string) json.RawMessage {
	var n json.Number
	if text[0] != '"' && json.Unmarshal([]byte(text), &n) == nil && n != "" {
		return json.RawMessage(text)
	}
	return quote(text)
}

// listOf divides a text at commas and spaces.
func listOf(text string, element func(string) json.RawMessage) json.RawMessage {
	raw := []byte{'['}
	if text != nothing {
		for i, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \n\t", r) }) {
			if i > 0 {
				raw = append(raw, ',')
			}
			raw = append(raw, element(part)...)
		}
	}
	return append(raw, ']')
}

// textsOf returns the elements of a list, or a text alone.
func textsOf(raw json.RawMessage) (texts []string) {
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		return []string{unquote(raw)}
	}
	for _, e := range elements {
		texts = append(texts, unquote(e))
	}
	return texts
}

// headersText returns a line for each value.
func headersText(raw json.RawMessage) string {
	headers := membersIn(raw)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		for _, value := range textsOf(headers[name]) {
			lines = append(lines, strings.TrimRight(name+": "+value, " "))
		}
	}
	return strings.Join(lines, "\n")
}

// pairs calls add with the name and the value of each line that is not blank. example is such a line.
func pairs(text, separator, example string, add func(name, value string) error) error {
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, separator)
		if name = strings.TrimSpace(name); !ok || name == "" {
			return fmt.Errorf("line %d must be a name and a value, such as %s", i+1, example)
		}
		if err := add(name, strings.TrimSpace(value)); err != nil {
			return fmt.Errorf("line %d %w", i+1, err)
		}
	}
	return nil
}

// headersOf returns headers. Those whose values differ only in spaces around them, which lines do not keep, stay as
// they were stored; those that are gone are null, unless what is written replaces all.
func headersOf(text string, stored json.RawMessage, replaces bool) (json.RawMessage, error) {
	typed := make(map[string][]string)
	if err := pairs(text, ":", "X-Team: shop", func(name, value string) error {
		name = textproto.CanonicalMIMEHeaderKey(name)
		typed[name] = append(typed[name], value)
		return nil
	}); err != nil {
		return nil, err
	}
	before, headers := membersIn(stored), make(Values)
	for name, values := range typed {
		was, is := before[name]
		if is && slices.EqualFunc(textsOf(was), values, func(a, b string) bool { return strings.TrimSpace(a) == b }) {
			headers[name] = was
			continue
		}
		headers[name], _ = json.Marshal(values) // texts have always JSON
	}
	for name := range before {
		if typed[name] == nil && !replaces {
			headers[name] = null
		}
	}
	return objectOf(headers), nil
}

// labelsText returns a line for each label. Values that a line would change are JSON strings.
func labelsText(raw json.RawMessage) string {
	labels := membersIn(raw)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		value := unquote(labels[name])
		if value != strings.TrimSpace(value) || strings.HasPrefix(value, `"`) || strings.Contains(value, "\n") ||
			!isBrowserSafe(value) {
			value = string(quote(value))
		}
		lines = append(lines, name+"="+value)
	}
	return strings.Join(lines, "\n")
}

func labelsOf(text string) (json.RawMessage, error) {
	labels := make(Values)
	if err := pairs(text, "=", "order=4711", func(name, value string) error {
		if labels[name] != nil {
			return fmt.Errorf("has a second label %q", name)
		}
		labels[name] = quote(value)
		if strings.HasPrefix(value, `"`) {
			if labels[name] = json.RawMessage(value); !json.Valid(labels[name]) {
				return errors.New("begins with a quotation mark, and is not a JSON string")
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return objectOf(labels), nil
}

// timeText returns a time without what is zero, or another text as it is.
func timeText(text string) string {
	t, ok := words.ParseTime(text)
	switch {
	case !ok:
		return text
	case t.Equal(t.Truncate(time.Minute)):
		return t.Format("2006-01-02 15:04 UTC")
	}
	return t.Format(time.RFC3339Nano)
}

// callbackText returns the URL of a callback, or the object if it has more.
func callbackText(value json.RawMessage) string {
	if len(value) == 0 {
		return ""
	}
	members := membersIn(value)
	maps.DeleteFunc(members, func(_ string, member json.RawMessage) bool {
		return slices.Contains([]string{"null", "[]", "{}", `"POST"`}, string(member))
	})
	switch {
	case members["url"] == nil:
		return nothing
	case len(members) == 1:
		return unquote(members["url"])
	}
	return string(objectOf(members))
}

// object returns the object of members. Those with a full stop in their names are members of objects in it.
func (v Values) object() json.RawMessage {
	inner, flat := make(map[string]Values), make(Values)
	for name, value := range v {
		object, member, nested := strings.Cut(name, ".")
		if !nested {
			flat[name] = value
			continue
		}
		if inner[object] == nil {
			inner[object] = make(Values)
		}
		inner[object][member] = value
	}
	for name, values := range inner {
		flat[name] = objectOf(values)
	}
	return objectOf(flat)
}

func objectOf(members Values) json.RawMessage {
	raw := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(append(append(raw, quote(name)...), ':'), members[name]...)
	}
	return append(raw, '}')
}
