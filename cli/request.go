// This part of the package makes the requests of commands, which their tags describe: package cli lists the tags.

package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/internal/utf8text"
)

// apiRequest is a request to the server.
type apiRequest struct {
	Method, Path string
	Query        url.Values
	Header       http.Header
	Body         requestFields // nil: none
	Raw          []byte        // the body, instead of Body
	// Complete adds what the answer lacks to the items of a page of a list; nil: nothing.
	Complete func(ctx context.Context, items []json.RawMessage) error
}

// Content is the body; nil: none.
func (r *apiRequest) Content() []byte {
	if r.Raw != nil || r.Body == nil {
		return r.Raw
	}
	return r.Body.Encode()
}

// requestFields are the members of a JSON object, whose values keep their bytes.
type requestFields map[string]json.RawMessage

// Set sets a member.
func (f requestFields) Set(name string, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("a flag has no form in JSON: %v", err))
	}
	f[name] = raw
}

// Encode returns the object. json.Marshal would change the white space of the values.
func (f requestFields) Encode() json.RawMessage {
	b := json.RawMessage{'{'}
	for i, name := range slices.Sorted(maps.Keys(f)) {
		if i > 0 {
			b = append(b, ", "...)
		}
		quoted, _ := json.Marshal(name)
		b = append(append(append(b, quoted...), ": "...), f[name]...)
	}
	return append(b, '}')
}

// Target is the path with the query.
func (r *apiRequest) Target() string {
	if len(r.Query) == 0 {
		return r.Path
	}
	return r.Path + "?" + r.Query.Encode()
}

// fieldOf returns the name of a flag or an argument in the API.
func fieldOf(v *kong.Value) string {
	if name := v.Tag.Get("field"); name != "" {
		return name
	}
	return strings.ReplaceAll(v.Name, "-", "_")
}

// valueReader returns a value of the command line: @FILE is the content of a file, @- the standard input.
type valueReader func(value string) ([]byte, error)

// requestOf returns the request that the tags of a command describe, with the values of its flags and arguments. An
// error is one in the command line.
func requestOf(command *kong.Node, read valueReader) (*apiRequest, error) {
	method, path, _ := strings.Cut(command.Tag.Get("call"), " ")
	r := &apiRequest{Method: method, Path: path, Query: url.Values{}, Header: http.Header{}}
	if method != http.MethodGet && method != http.MethodDelete {
		r.Body = requestFields{}
	}
	values := valuesOf(command)
	if method == http.MethodPut && !slices.ContainsFunc(values, isSettings) {
		return nil,
			errors.New("it replaces all settings: give them as NAME=VALUE, or with --file; NAME=null leaves one out")
	}
	// A file comes first: flags and assignments change it.
	slices.SortStableFunc(values, func(a, b *kong.Value) int { return orderOf(a) - orderOf(b) })
	for _, v := range values {
		if !v.Set || v.Target.IsZero() && v.Tag.Get("in") != "data" {
			continue
		}
		if placeholder := "{" + v.Name + "}"; strings.Contains(r.Path, placeholder) {
			r.Path = strings.ReplaceAll(r.Path, placeholder, url.PathEscape(v.Target.String()))
			continue
		}
		if err := r.apply(v, read); err != nil {
			return nil, err
		}
	}
	if len(r.Body) == 0 && method == http.MethodPost {
		r.Body = nil
	}
	return r, nil
}

// valuesOf returns the arguments and flags of a command.
func valuesOf(command *kong.Node) []*kong.Value {
	values := slices.Clone(command.Positional)
	for _, flag := range command.Flags {
		values = append(values, flag.Value)
	}
	return values
}

// isSettings reports whether a value was given that has settings.
func isSettings(v *kong.Value) bool {
	in := v.Tag.Get("in")
	return v.Set && (in == "file" || in == "assignments")
}

func orderOf(v *kong.Value) int {
	if v.Tag.Get("in") == "file" {
		return 0
	}
	return 1
}

// apply puts a flag or an argument into the request.
func (r *apiRequest) apply(v *kong.Value, read valueReader) error {
	value := reflect.Indirect(v.Target)
	in := v.Tag.Get("in")
	if in == "" {
		in = "query"
		if r.Body != nil {
			in = "body"
		}
	}
	switch in {
	case "none":
	case "query":
		if value.Kind() == reflect.Slice {
			for i := range value.Len() {
				r.Query.Add(fieldOf(v), fmt.Sprint(value.Index(i).Interface()))
			}
			return nil
		}
		r.Query.Set(fieldOf(v), fmt.Sprint(value.Interface()))
	case "body":
		r.Body.Set(fieldOf(v), value.Interface())
	case "revision":
		r.Header.Set("If-Match", fmt.Sprintf(`"%v"`, value.Interface()))
	case "headers":
		headers, err := headersOf(value.Interface().([]string)) //nolint:forcetypeassert // a tag of ours
		if err != nil {
			return err
		}
		r.Body.Set(fieldOf(v), headers)
	case "unset":
		for _, name := range value.Interface().([]string) { //nolint:forcetypeassert // a tag of ours
			r.Body[strings.ReplaceAll(name, "-", "_")] = json.RawMessage("null")
		}
	case "data":
		text, err := read(value.String())
		if err != nil {
			return err
		}
		if err := r.Body.setData(text); err != nil {
			return fmt.Errorf("%s: %w", flagName(v), err)
		}
	case "secret":
		text, err := read(value.String())
		if err == nil {
			text, err = utf8text.Trim(text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", flagName(v), err)
		}
		r.Body.Set(fieldOf(v), strings.TrimSpace(string(text)))
	case "file":
		text, err := read("@" + value.String())
		if err == nil {
			text, err = utf8text.Trim(text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", flagName(v), err)
		}
		if err := json.Unmarshal(text, &r.Body); err != nil {
			return fmt.Errorf("%s: %s is not a JSON object: %w", flagName(v), value.String(), err)
		}
	case "assignments":
		for _, text := range value.Interface().([]string) { //nolint:forcetypeassert // a tag of ours
			if err := r.Body.Assign(text); err != nil {
				return err
			}
		}
	default:
		panic("a flag goes to " + in)
	}
	return nil
}

func flagName(v *kong.Value) string {
	if v.Flag != nil {
		return "--" + v.Name
	}
	return v.Summary()
}

// setData sets the body of a job: JSON as it is without a byte order mark, other text as text, and other bytes in
// base64. It refuses UTF-16, which would be sent as bytes without a type.
func (f requestFields) setData(data []byte) error {
	text, err := utf8text.Trim(data)
	if err != nil {
		return fmt.Errorf("the body %w, or register it as body_base64", err)
	}
	switch {
	case json.Valid(text):
		f["body"] = bytes.TrimSpace(text)
	case utf8.Valid(data):
		f.Set("body_text", string(data))
	default:
		f.Set("body_base64", base64.StdEncoding.EncodeToString(data))
	}
	return nil
}

// headersOf returns the headers of lines NAME: VALUE, with names as they are.
func headersOf(lines []string) (http.Header, error) {
	headers := make(http.Header)
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, usagef("--header: %q is not NAME: VALUE", line)
		}
		name = strings.TrimSpace(name)
		headers[name] = append(headers[name], strings.TrimSpace(value))
	}
	return headers, nil
}

// Assign sets a member from name=value. Dots in the name lead into objects. A value is JSON, else a text.
func (f requestFields) Assign(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return fmt.Errorf("%q is not NAME=VALUE", text)
	}
	first, rest, deeper := strings.Cut(name, ".")
	if deeper {
		inner := requestFields{}
		if old := f[first]; old != nil && string(old) != "null" {
			if err := json.Unmarshal(old, &inner); err != nil {
				return fmt.Errorf("%s: %s is not an object", text, first)
			}
		}
		if err := inner.Assign(rest + "=" + value); err != nil {
			return err
		}
		f[first] = inner.Encode()
		return nil
	}
	switch {
	case slices.Contains(listFields, name) && value != "null" && !strings.HasPrefix(value, "["):
		f.Set(name, strings.Split(value, ","))
	case json.Valid([]byte(value)):
		f[name] = json.RawMessage(value)
	default:
		f.Set(name, value)
	}
	return nil
}
