package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// List returns things in a row: "a", "a and b", "a, b and c". Of more than three it names two and counts the others:
// "a, b and 3 more". It is empty for none.
func List(items []string) string {
	switch n := len(items); n {
	case 0:
		return ""
	case 1:
		return items[0]
	case 2, 3:
		return strings.Join(items[:n-1], ", ") + " and " + items[n-1]
	default:
		return strings.Join(items[:2], ", ") + " and " + Number(int64(n-2)) + " more"
	}
}

// ListAll is List that names all things, however many they are.
func ListAll(items []string) string {
	if n := len(items); n > 3 {
		return strings.Join(items[:n-1], ", ") + " and " + items[n-1]
	}
	return List(items)
}

// Sentence joins the parts of a sentence with spaces and ends it with one full stop, unless it ends with another mark.
// Empty parts are left out. A sentence of nothing is empty. It does not change the case of the first letter, which may
// be that of an id.
func Sentence(parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part = strings.TrimSpace(part); part != "" {
			kept = append(kept, part)
		}
	}
	text := strings.Join(kept, " ")
	bare := strings.TrimRight(text, ". ")
	switch last, _ := utf8.DecodeLastRuneInString(bare); {
	case bare == "":
		return ""
	case strings.ContainsRune("?!…:", last):
		return bare
	case strings.ContainsRune(`)"”'’`, last) && endsWithin(bare):
		return bare
	}
	return bare + "."
}

// endsWithin reports whether a text ends with a sentence in parentheses or quotes: "He said so (and left.)".
func endsWithin(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text, `)"”'’`))
	return strings.ContainsRune(".?!…", last)
}

// LowerFirst returns a text with its first letter in lower case, to go on with a sentence.
func LowerFirst(text string) string { return mapFirst(unicode.ToLower, text) }

// UpperFirst returns a text with its first letter in upper case, to begin a sentence.
func UpperFirst(text string) string { return mapFirst(unicode.ToUpper, text) }

func mapFirst(to func(rune) rune, text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 || first == utf8.RuneError {
		return text
	}
	return string(to(first)) + text[size:]
}

// Clause returns a sentence as a part of another one, without its capital letter and its full stop.
func Clause(sentence string) string { return LowerFirst(strings.TrimSuffix(sentence, ".")) }

// Cut returns at most so many characters of a text, the last one an ellipsis if there are more.
func Cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
