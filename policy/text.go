package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine returns a text as one line of printable, valid UTF-8 of at most most bytes.
func OneLine(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) <= most {
		return text
	}
	cut := most - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
