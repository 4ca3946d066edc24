package policyform

import (
	"cmp"
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/jobform"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/job/units"
)

// leaf returns a field of a value at a place in the settings, which parse and format convert from and to texts.
func leaf[S, T any](at func(*S) *T, format func(T) string, parse func(string) (T, error), f web.Field) field[S] {
	return field[S]{
		Field: f,
		get:   func(s *S) string { return format(*at(s)) },
		set: func(s, _ *S, text string) error {
			value, err := parse(text)
			if err == nil {
				*at(s) = value
			}
			return err
		},
		clear: func(s *S) {
			var none T
			*at(s) = none
		},
	}
}

// textField is a line of text.
func textField[S any](f web.Field, at func(*S) *string) field[S] {
	return leaf(at, same, func(text string) (string, error) { return text, nil }, f)
}

func same(text string) string { return text }

// linesField is a text of several lines, kept as it is.
func linesField[S any](f web.Field, at func(*S) *string) field[S] {
	made := textField(f, at)
	made.Kind, made.lines = "textarea", true
	return made
}

// durationField is a duration, of which zero is the default.
func durationField[S any](f web.Field, at func(*S) *time.Duration) field[S] {
	return leaf(at, formatDuration, parseDuration, f)
}

func formatDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return units.FormatDuration(d)
}

func parseDuration(text string) (time.Duration, error) {
	d, err := parseAnyDuration(text)
	if err == nil && d <= 0 {
		err = errZero
	}
	return d, err
}

// parseAnyDuration parses a duration, or a number of seconds.
func parseAnyDuration(text string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return units.ParseSeconds(text)
	}
	return units.ParseDuration(text)
}

// durationOrZeroField is a duration that may be zero, of which nil is the default.
func durationOrZeroField[S any](f web.Field, at func(*S) **time.Duration) field[S] {
	return leaf(at, formatPointer(units.FormatDuration), parsePointer(parseAnyDuration), f)
}

// formatPointer and parsePointer are for values of which nil is the default.
func formatPointer[T any](format func(T) string) func(*T) string {
	return func(v *T) string {
		if v == nil {
			return ""
		}
		return format(*v)
	}
}

func parsePointer[T any](parse func(string) (T, error)) func(string) (*T, error) {
	return func(text string) (*T, error) {
		v, err := parse(text)
		return &v, err
	}
}

// wholeField is a whole number, of which nil is the default.
func wholeField[S any, T int | int64](f web.Field, at func(*S) **T) field[S] {
	return leaf(at, formatPointer(formatWhole[T]), parsePointer(parseWhole[T]), f)
}

// positiveField is a whole number, of which zero is the default.
func positiveField[S any, T int | int64](f web.Field, at func(*S) *T) field[S] {
	format := func(n T) string {
		if n == 0 {
			return ""
		}
		return formatWhole(n)
	}
	parse := func(text string) (T, error) {
		n, err := parseWhole[T](text)
		if err == nil && n <= 0 {
			err = errZero
		}
		return n, err
	}
	return leaf(at, format, parse, f)
}

func formatWhole[T int | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

func parseWhole[T int | int64](text string) (T, error) {
	n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64)
	if err != nil || int64(T(n)) != n {
		return 0, errors.New("must be a whole number")
	}
	return T(n), nil
}

// shareField is a number with decimals, of which nil is the default.
func shareField[S any](f web.Field, at func(*S) **float64) field[S] {
	parse := func(text string) (float64, error) {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || v != v || v-v != 0 { // NaN and infinities are no JSON
			return 0, errors.New("must be a number such as 0.1")
		}
		return v, nil
	}
	format := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return leaf(at, formatPointer(format), parsePointer(parse), f)
}

// yesField is a switch, which is off by default: the API shows what is not set as false. off says what is then.
func yesField[S any](f web.Field, off string, at func(*S) **bool) field[S] {
	f.Kind, f.Options = "select", []web.Link{{To: "", Text: off}, {To: "true", Text: "yes"}}
	format := func(v *bool) string {
		if v == nil || !*v {
			return ""
		}
		return "true"
	}
	parse := func(text string) (*bool, error) {
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, errors.New("must be true or false")
		}
		return &v, nil
	}
	return leaf(at, format, parse, f)
}

// listField is a list of words, of which an empty one is the default.
func listField[S any](f web.Field, at func(*S) *[]string) field[S] {
	return leaf(at, formatList, parseList, f)
}

func formatList(list []string) string { return strings.Join(list, ", ") }

func parseList(text string) ([]string, error) {
	list := splitList(text)
	if len(list) == 0 {
		return nil, errors.New("must have words, with commas or spaces between them")
	}
	return list, nil
}

// nothing is the text of a list that is empty, unlike one that is not set.
const nothing = "none"

// listOrNoneField is a list of words that may be empty, of which nil is the default.
func listOrNoneField[S any](f web.Field, at func(*S) *[]string) field[S] {
	format := func(list []string) string {
		if list != nil && len(list) == 0 {
			return nothing
		}
		return formatList(list)
	}
	parse := func(text string) ([]string, error) {
		if text == nothing {
			return []string{}, nil
		}
		return parseList(text)
	}
	return leaf(at, format, parse, f)
}

// splitList divides a list at commas and spaces.
func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
}

// ladderField is a list of durations.
func ladderField[S any](f web.Field, at func(*S) *[]time.Duration) field[S] {
	return leaf(at, formatLadder, parseLadder, f)
}

func formatLadder(ladder []time.Duration) string {
	texts := make([]string, len(ladder))
	for i, d := range ladder {
		texts[i] = units.FormatDuration(d)
	}
	return strings.Join(texts, ", ")
}

func parseLadder(text string) ([]time.Duration, error) {
	const most = 100 // of the API
	parts := splitList(text)
	switch {
	case len(parts) == 0:
		return nil, errors.New("must have a wait such as 15s")
	case len(parts) > most:
		return nil, fmt.Errorf("must have at most %d waits", most)
	}
	ladder := make([]time.Duration, len(parts))
	for i, part := range parts {
		d, err := parseDuration(part)
		if err != nil {
			return nil, fmt.Errorf("wait %d: %w", i+1, err)
		}
		ladder[i] = d
	}
	return ladder, nil
}

// headersField are headers, one in a line.
func headersField[S any](f web.Field, at func(*S) *client.Headers) field[S] {
	f.Kind, f.Rows = "textarea", cmp.Or(f.Rows, 3)
	return field[S]{
		Field: f,
		get:   func(s *S) string { return jobform.FormatHeaders(*at(s)) },
		set: func(s, before *S, text string) error {
			typed, err := parseHeaders(text)
			if err == nil {
				*at(s) = changeOfHeaders(*at(before), typed)
			}
			return err
		},
		clear: func(s *S) { *at(s) = nil },
	}
}

func parseHeaders(text string) (client.Headers, error) {
	h := make(client.Headers)
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Errorf("line %d must be a name, a colon and a value, such as X-Team: shop", i+1)
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		h[name] = append(h[name], strings.TrimSpace(value))
	}
	return h, nil
}

// changeOfHeaders returns the headers that differ in more than the spaces around values, which a form does not keep.
// Those that are removed have no values.
func changeOfHeaders(before, typed client.Headers) client.Headers {
	change := make(client.Headers)
	for name, values := range typed {
		if !slices.EqualFunc(before[name], values, func(a, b string) bool { return strings.TrimSpace(a) == b }) {
			change[name] = values
		}
	}
	for name := range before {
		if _, kept := typed[name]; !kept {
			change[name] = nil
		}
	}
	return change
}
