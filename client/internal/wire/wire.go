// Package wire encodes and decodes the JSON of Ringback's API. It differs from that of encoding/json: durations are
// texts, times have milliseconds, bodies keep their bytes, null is the zero value, and texts that are not UTF-8 are
// refused instead of changed. In a body of any type that excepts what methods such as MarshalJSON encode.
//
// A field has a tag of encoding/json, and perhaps a tag wire:
//
//	payload  a body: one of the members body, body_text and body_base64
//	raw      the JSON that was decoded
//	nulls    the names of members that are null
//	none     a pointer for which null is the zero value, and nil only if the member is missing
//	key      a struct that is zero is null, and JSON that is a string is this field
//	lossy    a text for people: bytes that are not UTF-8 are replaced
package wire

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Text is a body that is a text. Without it a string is a JSON string.
type Text string

// MaxBody bounds the bodies that are read from an io.Reader.
const MaxBody = 10 << 20

var (
	durationType = reflect.TypeFor[time.Duration]()
	timeType     = reflect.TypeFor[time.Time]()
	rawType      = reflect.TypeFor[json.RawMessage]()
)

// field is a field of a struct with its tag.
type field struct {
	name    string
	value   reflect.Value
	options string
}

func (f field) is(option string) bool { return strings.Contains(f.options, option) }

// fieldsOf returns the fields of a struct, with those of embedded structs.
func fieldsOf(v reflect.Value) []field {
	var all []field
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag := f.Tag.Get("json")
		switch {
		case !f.IsExported(), tag == "-" && f.Tag.Get("wire") == "":
		case f.Anonymous && tag == "":
			all = append(all, fieldsOf(v.Field(i))...)
		default:
			name, options, _ := strings.Cut(tag, ",")
			all = append(all, field{name, v.Field(i), options + "," + f.Tag.Get("wire")})
		}
	}
	return all
}

// Encode returns the JSON of a value.
func Encode(v any) ([]byte, error) { return appendValue(nil, reflect.ValueOf(v)) }

func appendValue(to []byte, v reflect.Value) ([]byte, error) {
	switch v.Type() {
	case durationType:
		return append(append(append(to, '"'), FormatDuration(time.Duration(v.Int()))...), '"'), nil
	case timeType:
		t, _ := reflect.TypeAssert[time.Time](v)
		if t.IsZero() {
			return append(to, "null"...), nil
		}
		if early := t.Sub(t.Truncate(time.Millisecond)); early > 0 {
			t = t.Add(time.Millisecond - early)
		}
		return t.UTC().AppendFormat(to, `"2006-01-02T15:04:05.000Z07:00"`), nil
	case rawType:
		return appendRaw(to, v.Bytes())
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return append(to, "null"...), nil
		}
		return appendValue(to, v.Elem())
	case reflect.Struct:
		return appendObject(to, v)
	case reflect.Slice:
		if !v.IsNil() && v.Type().Elem().Kind() != reflect.Uint8 {
			return appendArray(to, v)
		}
	}
	if err := checkText(v); err != nil {
		return nil, err
	}
	return appendJSON(to, v.Interface())
}

var errNotUTF8 = errors.New("is not UTF-8, as JSON must be: encode bytes as text, for instance in base64")

var (
	jsonMarshalerType = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
)

// checkAny is checkText for a value of any type; nil is allowed. What methods of the type encode is not checked.
func checkAny(v reflect.Value) error {
	if !v.IsValid() {
		return nil
	}
	if t := reflect.PointerTo(v.Type()); t.Implements(jsonMarshalerType) || t.Implements(textMarshalerType) {
		return nil
	}
	return checkText(v)
}

// checkText refuses texts that encoding/json would change, at any depth.
func checkText(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return errNotUTF8
		}
	case reflect.Pointer, reflect.Interface:
		return checkAny(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len() && v.Type().Elem().Kind() != reflect.Uint8; i++ {
			if err := checkAny(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if err := cmp.Or(checkAny(key), checkAny(v.MapIndex(key))); err != nil {
				return fmt.Errorf("%q: %w", key, err)
			}
		}
	case reflect.Struct:
		for f, field := range v.Fields() {
			if tag := f.Tag.Get("json"); tag == "-" || !f.IsExported() && !f.Anonymous {
				continue
			}
			if err := checkAny(field); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
	}
	return nil
}

func appendArray(to []byte, v reflect.Value) (_ []byte, err error) {
	to = append(to, '[')
	for i := range v.Len() {
		if i > 0 {
			to = append(to, ',')
		}
		if to, err = appendValue(to, v.Index(i)); err != nil {
			return nil, err
		}
	}
	return append(to, ']'), nil
}

func appendObject(to []byte, v reflect.Value) (_ []byte, err error) {
	fields := fieldsOf(v)
	if slices.ContainsFunc(fields, func(f field) bool { return f.is("key") }) && v.IsZero() {
		return append(to, "null"...), nil
	}
	to = append(to, '{')
	first := len(to)
	member := func(name string) {
		if len(to) > first {
			to = append(to, ',')
		}
		to = append(append(append(to, '"'), name...), `":`...)
	}
	for _, f := range fields {
		switch {
		case f.is("raw"), f.is("omitzero") && f.value.IsZero():
		case f.is("nulls"):
			for i := range f.value.Len() {
				member(f.value.Index(i).String())
				to = append(to, "null"...)
			}
		case f.is("payload"):
			name, raw, err := encodePayload(f.value.Interface())
			if err != nil {
				return nil, fmt.Errorf("body: %w", err)
			}
			if name != "" {
				member(name)
				to = append(to, raw...)
			}
		default:
			member(f.name)
			if f.is("lossy") {
				f.value = reflect.ValueOf(strings.ToValidUTF8(f.value.String(), "\ufffd"))
			}
			if to, err = appendValue(to, f.value); err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
		}
	}
	return append(to, '}'), nil
}

// appendRaw appends JSON as it is.
func appendRaw(to, raw []byte) ([]byte, error) {
	if !json.Valid(raw) {
		return nil, errors.New("is not JSON")
	}
	return append(to, raw...), nil
}

// appendJSON appends the JSON of encoding/json, without escapes for HTML.
func appendJSON(to []byte, v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err // the member's name is added by the caller
	}
	return append(to, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...), nil
}

// encodePayload returns the member of a body, and its JSON; without a body no name.
func encodePayload(body any) (name string, raw []byte, err error) {
	switch b := body.(type) {
	case nil:
		return "", nil, nil
	case json.RawMessage:
		if b == nil {
			return "", nil, nil
		}
		raw, err = appendRaw(nil, b)
		return "body", raw, err
	case Text:
		raw, err = appendValue(nil, reflect.ValueOf(string(b)))
		return "body_text", raw, err
	case string:
		raw, err = appendValue(nil, reflect.ValueOf(b))
		return "body", raw, err
	case []byte:
		if b == nil {
			return "", nil, nil
		}
		return "body_base64", base64JSON(b), nil
	case io.Reader:
		all, err := io.ReadAll(io.LimitReader(b, MaxBody+1))
		if err != nil {
			return "", nil, fmt.Errorf("read it: %w", err)
		}
		if len(all) > MaxBody {
			return "", nil, fmt.Errorf("is larger than %d B, the most that servers accept", MaxBody)
		}
		return "body_base64", base64JSON(all), nil
	}
	if raw, err = appendJSON(nil, body); err == nil { // so it has no cycles
		err = checkAny(reflect.ValueOf(body))
	}
	return "body", raw, err
}

func base64JSON(b []byte) []byte {
	to := make([]byte, 0, base64.StdEncoding.EncodedLen(len(b))+2)
	return append(base64.StdEncoding.AppendEncode(append(to, '"'), b), '"')
}

// Decode reads the JSON of a value that v points to. Members that v does not have are ignored.
func Decode(data []byte, v any) error { return decodeValue(data, reflect.ValueOf(v).Elem()) }

func decodeValue(data []byte, v reflect.Value) error {
	if string(data) == "null" {
		v.SetZero()
		return nil
	}
	switch {
	case v.Type() == durationType:
		d, err := parseDuration(strings.Trim(string(data), `"`))
		v.SetInt(int64(d))
		return err
	case v.Type() == timeType, v.Type() == rawType:
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return decodeValue(data, v.Elem())
	case v.Kind() == reflect.Struct:
		return decodeObject(data, v)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		return decodeArray(data, v)
	}
	return json.Unmarshal(data, v.Addr().Interface()) // the member's name is added by the caller
}

func decodeArray(data []byte, v reflect.Value) error {
	var items []json.RawMessage
	if err := json.Unmarshal(data, &items); err != nil {
		return err // the member's name is added by the caller
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		if err := decodeValue(item, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func decodeObject(data []byte, v reflect.Value) error {
	fields := fieldsOf(v)
	if i := slices.IndexFunc(fields, func(f field) bool { return f.is("key") }); i >= 0 && len(data) > 0 &&
		data[0] == '"' {
		return decodeValue(data, fields[i].value)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err // the member's name is added by the caller
	}
	for _, f := range fields {
		raw, sent := members[f.name]
		switch {
		case f.is("raw"):
			f.value.SetBytes(slices.Clone(data))
		case f.is("nulls"):
		case f.is("payload"):
			if err := decodePayload(members, f.value); err != nil {
				return fmt.Errorf("body: %w", err)
			}
		case sent && f.is("none") && string(raw) == "null":
			f.value.Set(reflect.New(f.value.Type().Elem()))
		case sent:
			if err := decodeValue(raw, f.value); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
	}
	return nil
}

// decodePayload reads a body: into []byte its bytes, into any a json.RawMessage, a Text or a []byte.
func decodePayload(members map[string]json.RawMessage, v reflect.Value) error {
	has := func(name string) bool { raw, sent := members[name]; return sent && string(raw) != "null" }
	var body any
	var data []byte
	switch {
	case has("body_text"):
		var text string
		if err := json.Unmarshal(members["body_text"], &text); err != nil {
			return err // the caller names it
		}
		body, data = Text(text), []byte(text)
	case has("body_base64"):
		if err := json.Unmarshal(members["body_base64"], &data); err != nil {
			return err // the caller names it
		}
		body = data
	// null is a body if it has a type
	case has("body"), members["body"] != nil && (has("content_type") || v.Kind() == reflect.Interface):
		body, data = members["body"], members["body"]
	default:
		return nil
	}
	if v.Kind() == reflect.Interface {
		v.Set(reflect.ValueOf(body))
		return nil
	}
	v.SetBytes(data)
	return nil
}

// Values returns the fields of a struct as parameters of a query. Texts keep their bytes.
func Values(v any) url.Values {
	q := make(url.Values)
	for _, f := range fieldsOf(reflect.ValueOf(v)) {
		if f.value.IsZero() {
			continue
		}
		switch value := reflect.Indirect(f.value); value.Kind() {
		case reflect.String:
			q.Set(f.name, value.String())
		case reflect.Slice:
			for i := range value.Len() {
				q.Add(f.name, value.Index(i).String())
			}
		default:
			text, _ := appendValue(nil, value) // a number, a time or a duration: it never fails
			q.Set(f.name, strings.Trim(string(text), `"`))
		}
	}
	return q
}
