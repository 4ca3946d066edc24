package output

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable escapes what a terminal acts on: control characters, line breaks, changes of the writing direction, and
// bytes that are not UTF-8.
func Printable(text string) string { return escape(text, "") }

// PrintableLines leaves line breaks and tabs.
func PrintableLines(text string) string { return escape(text, "\n\t") }

// escapeJSON does the same in a JSON text, in which only strings contain such characters.
func escapeJSON(text string) string { return escape(text, "\n") }

func escape(text, kept string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return isUnsafe(r, kept) }) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			b.WriteString(`\ufffd`)
		case isUnsafe(r, kept):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isUnsafe reports whether a terminal acts on a character instead of printing it. Spaces of any width, joiners and
// characters that are newer than this program are text.
func isUnsafe(r rune, kept string) bool {
	switch {
	case unicode.IsControl(r),
		r == '\u2028', r == '\u2029', // line breaks
		'\u202a' <= r && r <= '\u202e', '\u2066' <= r && r <= '\u2069': // embeddings, overrides, isolates
		return !strings.ContainsRune(kept, r)
	}
	return false
}
