package job

import "strings"

// reservedIDPrefix is the prefix of the ids of jobs that Ringback creates.
const reservedIDPrefix = "rb:"

// IsID reports whether text is a valid job id: 1 to 64 of [A-Za-z0-9_:-], up to 96 with the prefix rb:.
func IsID(text string) bool {
	return consistsOf(text, 64, "_:-") || strings.HasPrefix(text, reservedIDPrefix) && consistsOf(text, 96, "_:-")
}

// IsTopic reports whether text is a valid topic name: 1 to 64 of [A-Za-z0-9._-].
func IsTopic(text string) bool { return consistsOf(text, 64, "._-") }

// IsLane reports whether text is a valid lane name: 1 to 128 of [A-Za-z0-9._:\[\]-].
func IsLane(text string) bool { return consistsOf(text, 128, "._:[]-") }

// isMark reports whether text is a valid mark of managed settings: 1 to 64 of [A-Za-z0-9._:/-].
func isMark(text string) bool { return consistsOf(text, 64, "._:/-") }

// markRule is the error of an invalid mark.
const markRule = "must be 1 to 64 of A-Z a-z 0-9 . _ : / and -"

// ValidateMark returns the error of an invalid mark of managed settings.
func ValidateMark(text string) []FieldError {
	if text == "" || isMark(text) {
		return nil
	}
	return []FieldError{{"/managed_by", markRule}}
}

// NamespaceRule says which names namespaces may have.
const NamespaceRule = "must be 1 to 32 of a-z 0-9 and -, not beginning with -"

// IsNamespace reports whether text is a valid namespace: 1 to 32 of [a-z0-9-], not beginning with -.
func IsNamespace(text string) bool {
	return consistsOf(text, 32, "-") && text[0] != '-' && text == strings.ToLower(text)
}

// consistsOf reports whether text is 1 to most ASCII letters, digits and characters of others.
func consistsOf(text string, most int, others string) bool {
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

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isDotSegment reports whether text is a dot segment, which clients and servers remove from paths (RFC 3986, 5.2.4).
func isDotSegment(text string) bool { return text == "." || text == ".." }

// isStatus reports whether text is an HTTP status of 300 to 599 ("410") or a class of them ("4xx").
func isStatus(text string) bool {
	if len(text) != 3 || text[0] < '3' || text[0] > '5' {
		return false
	}
	return text[1:] == "xx" || isDigit(text[1]) && isDigit(text[2])
}

// isAnyStatus is isStatus from 200 on.
func isAnyStatus(text string) bool {
	return isStatus(text) || len(text) == 3 && text[0] == '2' && isStatus("3"+text[1:])
}

// IsFieldValue reports whether text is a valid header value (RFC 9110, section 5.5): no control character but the tab.
func IsFieldValue(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// IsFieldName reports whether text is a valid header name: a token of RFC 9110, section 5.6.2.
func IsFieldName(text string) bool { return consistsOf(text, MaxHeaders, "!#$%&'*+-.^_`|~") }
