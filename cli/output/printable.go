package output

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable escapes what a terminal would not print as a character: control characters, line breaks, changes of the
// writing direction and invalid bytes.
func Printable(text string) string { return escape(text, "") }

// PrintableLines leaves line breaks and tabs.
func PrintableLines(text string) string { return escape(text, "\n\t") }

// escapeJSON does the same in a JSON text, in which only strings contain such characters.
func escapeJSON(text string) string { return escape(text, "\n") }

func escape(text, kept string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !safe(r, kept) }) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case safe(r, kept) && (r != utf8.RuneError || strings.HasPrefix(text[i:], "\ufffd")):
			b.WriteRune(r)
		case r == utf8.RuneError:
			b.WriteString(`\ufffd`)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// safe reports whether a terminal prints a character as such.
func safe(r rune, kept string) bool {
	return r != utf8.RuneError && (unicode.IsPrint(r) || strings.ContainsRune(kept, r))
}

// Number writes a number with commas.
func Number(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Jobs is a number of jobs.
func Jobs(n int64) string {
	if n == 1 {
		return "1 job"
	}
	return Number(n) + " jobs"
}
