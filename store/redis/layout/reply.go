package layout

import (
	"strconv"
)

// List reads an array of a reply; nil for another type.
func List(v any) []any {
	l, _ := v.([]any)
	return l
}

// Str reads a string of a reply; nil is empty.
func Str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	default:
		return ""
	}
}

// Strs reads an array of strings.
func Strs(v any) []string {
	l := List(v)
	out := make([]string, len(l))
	for i := range l {
		out[i] = Str(l[i])
	}
	return out
}

// Num reads an integer of a reply, sent as a number or as digits; 0 for other values.
func Num(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		return Int(v)
	default:
		return 0
	}
}
