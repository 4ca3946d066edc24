// This part of the package finds the characters of a text that show nothing, or change how the text around them looks:
// control characters, changes of the writing direction, characters without width. Texts of clients and receivers may
// have them, and would look like others.

package utf8text

import (
	"fmt"
	"strings"
	"unicode"
)

// EscapeInvisible returns an invisible character as \u202e, or as \U000e0041 beyond 16 bits. Go and double-quoted YAML
// read it.
func EscapeInvisible(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// HasInvisible reports whether a text has invisible characters.
func HasInvisible(text string) bool {
	found := false
	ReplaceInvisible(text, func(rune) string { found = true; return "" })
	return found
}

// ReplaceInvisible replaces the invisible characters of a text. Line breaks, tabs and bytes that are no UTF-8 stay.
func ReplaceInvisible(text string, with func(rune) string) string {
	var b strings.Builder
	last, copied := ' ', 0
	for i, r := range text {
		if is(last, r) {
			b.WriteString(text[copied:i])
			b.WriteString(with(r))
			copied = i + len(string(r))
			r = ' '
		}
		last = r
	}
	if copied == 0 {
		return text
	}
	b.WriteString(text[copied:])
	return b.String()
}

// is reports whether a character is invisible after another one. Those that some scripts and emoji need to join
// characters are not if they follow one beyond ASCII.
func is(before, r rune) bool {
	switch {
	case r >= ' ' && r < 0x7f, r == '\n', r == '\r', r == '\t':
		return false
	case r == '\u200c', r == '\u200d', r == '\ufe0e', r == '\ufe0f':
		return before <= unicode.MaxASCII || before == r || before == '\u200c' || before == '\u200d'
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Variation_Selector)
}
