package job

import "strings"

// ownPrefix begins the ids of jobs that Ringback makes for others.
const ownPrefix = "rb:"

// IsID reports whether text has the form of a job's id, also of one that Ringback made: 1 to 64 of [A-Za-z0-9_:-], 96 when
// it begins with rb:.
func IsID(text string) bool {
	return spelled(text, 64, "_:-") || strings.HasPrefix(text, ownPrefix) && spelled(text, 96, "_:-")
}

// IsTopic reports whether text has the form of a topic's name: 1 to 64 of [A-Za-z0-9._-].
func IsTopic(text string) bool { return spelled(text, 64, "._-") }

// IsLane reports whether text has the form of a lane's name: 1 to 128 of [A-Za-z0-9._:\[\]-].
func IsLane(text string) bool { return spelled(text, 128, "._:[]-") }

// spelled reports whether text is 1 to most letters and digits of ASCII, or of the others.
func spelled(text string, most int, others string) bool {
	if text == "" || len(text) > most {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !isAlphanumeric(c) && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || isDigit(c)
}

// isDots reports whether text is what clients and servers take out of a path: nothing of that name could be reached.
func isDots(text string) bool { return text == "." || text == ".." }

// isStatus reports whether text names an HTTP status that is no success ("410") or a class of them ("4xx").
func isStatus(text string) bool {
	if len(text) != 3 || text[0] < '3' || text[0] > '5' {
		return false
	}
	return text[1:] == "xx" || isDigit(text[1]) && isDigit(text[2])
}

// isAnyStatus is isStatus for successes too.
func isAnyStatus(text string) bool {
	return isStatus(text) || len(text) == 3 && text[0] == '2' && isStatus("3"+text[1:])
}

// isFieldValue reports whether text can stand in a header (RFC 9110, section 5.5): no control character but the tab, so
// no line break.
func isFieldValue(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// isFieldName reports whether text is a header's name: a token of RFC 9110, section 5.6.2.
func isFieldName(text string) bool { return spelled(text, MaxHeaders, "!#$%&'*+-.^_`|~") }
