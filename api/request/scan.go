// This part of the package reads JSON in place: members and elements are parts of the text, byte for byte.
//
// CheckJSON refuses invalid text with a *response.Problem. The other functions take text that it has accepted.

package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/utf8text"
)

// CheckJSON refuses text that is not one JSON value in UTF-8, and names the position of the error. Values may nest as
// deep as encoding/json reads (10,000 levels). first is the number of the text's first line in the request, from 1.
func CheckJSON(text []byte, first int) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return response.NewProblem(response.InvalidJSON, "the request has no body: send JSON")
	}
	if _, err := utf8text.Trim(text); err != nil {
		return response.NewProblem(response.InvalidJSON, "the text "+err.Error())
	}
	if !utf8.Valid(text) {
		at := 0
		for r, size := utf8.DecodeRune(text); r != utf8.RuneError || size != 1; r, size = utf8.DecodeRune(text[at:]) {
			at += size
		}
		return response.NewProblem(response.InvalidJSON, "invalid UTF-8 at "+place(text[:at], first))
	}
	if json.Valid(text) {
		return nil
	}
	var ignored json.RawMessage
	err := json.Unmarshal(text, &ignored)
	at := len(text)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = max(int(e.Offset)-1, 0)
	}
	return response.NewProblem(response.InvalidJSON,
		fmt.Sprintf("invalid JSON at %s: %v", place(text[:min(at, len(text))], first), err))
}

// place names the position after a text that begins in line first. Columns are counted in bytes.
func place(before []byte, first int) string {
	line := first + bytes.Count(before, []byte{'\n'})
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d", line, column)
}

// Members iterates over the members of an object that CheckJSON accepted: names without escapes, and values as they
// were sent.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		rest := object[1:]
		for {
			rest = SkipSpace(rest)
			if rest[0] == ',' {
				rest = SkipSpace(rest[1:])
			}
			if rest[0] == '}' {
				return
			}
			end := valueEnd(rest)
			name := rest[1 : end-1]
			if bytes.IndexByte(name, '\\') >= 0 {
				name = []byte(Unquote(rest[:end]))
			}
			rest = SkipSpace(rest[end:])
			rest = SkipSpace(rest[1:]) // the colon
			end = valueEnd(rest)
			if !yield(name, rest[:end:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// Elements iterates over the elements of an array that CheckJSON accepted.
func Elements(array []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		rest := array[1:]
		for i := 0; ; i++ {
			rest = SkipSpace(rest)
			if rest[0] == ',' {
				rest = SkipSpace(rest[1:])
			}
			if rest[0] == ']' {
				return
			}
			end := valueEnd(rest)
			if !yield(i, rest[:end:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// SkipSpace returns text without leading white space.
func SkipSpace(text []byte) []byte {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\n' || text[0] == '\r' || text[0] == '\t') {
		text = text[1:]
	}
	return text
}

// valueEnd returns the end of the value at the beginning of valid text.
func valueEnd(text []byte) int {
	switch text[0] {
	case '"':
		return stringEnd(text, 0)
	case '{', '[':
		depth := 0
		for i := 0; i < len(text); i++ {
			switch text[i] {
			case '"':
				i = stringEnd(text, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return len(text)
	default:
		for i, c := range text {
			if c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t' {
				return i
			}
		}
		return len(text)
	}
}

// stringEnd returns the end of the string that begins at from.
func stringEnd(text []byte, from int) int {
	for i := from + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// TypeOf names the type of a JSON value, and what keeps Text from reading a string.
func TypeOf(raw []byte) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		if hasLoneSurrogate(raw) {
			return `a string with half of a surrogate pair, such as \ud83d alone, which UTF-8 cannot have`
		}
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// Text returns the text of a value. It is not ok for a value of another type, and for a string with a lone surrogate.
func Text(raw []byte) (text string, ok bool) {
	if raw[0] != '"' || hasLoneSurrogate(raw) {
		return "", false
	}
	return Unquote(raw), true
}

// hasLoneSurrogate reports whether a JSON string has an escape of half a pair of surrogates, such as \ud83d alone. It
// is no character: UTF-8 has no form for it, and Unquote replaces it.
func hasLoneSurrogate(raw []byte) bool {
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 {
			return false
		}
		first := escaped(raw[at:])
		raw = raw[at+2:]
		if !utf16.IsSurrogate(first) {
			continue
		}
		raw = raw[len("d83d"):]
		if utf16.DecodeRune(first, escaped(raw)) == utf8.RuneError {
			return true
		}
		raw = raw[len(`\ude00`):]
	}
}

// escaped returns the number in an escape such as \ud83d at the beginning of a text that CheckJSON accepted; 0: there
// is none.
func escaped(text []byte) rune {
	if len(text) < len(`\ud83d`) || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	n, _ := strconv.ParseUint(string(text[2:6]), 16, 16) // valid: CheckJSON accepted it
	return rune(n)
}

// Unquote returns the text of a JSON string. Lone surrogates are replaced by U+FFFD.
func Unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	_ = json.Unmarshal(raw, &text) // valid: CheckJSON accepted it
	return text
}
