package job

import (
	"fmt"
	"net/textproto"
	"slices"
	"strings"
)

// reserved are headers that Ringback and the connection see to, as foldName spells them. Proxy is none that exists, but
// programs behind CGI take it for the variable HTTP_PROXY.
var reserved = map[string]bool{
	"connection": true, "keep-alive": true, "te": true, "trailer": true, "transfer-encoding": true, "upgrade": true,
	"host": true, "content-length": true, "expect": true, "proxy": true,
}

// reservedPrefixes begin further ones.
var reservedPrefixes = []string{"proxy-", "webhook-", "ringback-"}

// ReservedHeader reports whether jobs cannot set a header of this name, because Ringback or the connection sees to it.
// Names are compared as receivers behind CGI and its kin do: Webhook_Id is Webhook-Id there.
func ReservedHeader(name string) bool {
	name = foldName(name)
	if reserved[name] {
		return true
	}
	for _, prefix := range reservedPrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// SameHeader reports whether two names are one header, compared as ReservedHeader does.
func SameHeader(a, b string) bool { return len(a) == len(b) && foldName(a) == foldName(b) }

// foldName gives a header's name in lower case, with a hyphen for whatever is neither a letter nor a digit: programs that
// get headers as variables see such names as one.
func foldName(name string) string {
	for i := range len(name) {
		if c := name[i]; 'a' <= c && c <= 'z' || isDigit(c) || c == '-' {
			continue
		}
		folded := []byte(name)
		for i, c := range folded {
			switch {
			case 'A' <= c && c <= 'Z':
				folded[i] = c | 0x20
			case !isAlphanumeric(c):
				folded[i] = '-'
			}
		}
		return string(folded)
	}
	return name
}

// headerFaults checks headers, in whatever case their names are. at is the pointer of the whole. With settings those that
// are stored already may be among them: secrets that are sealed.
func headerFaults(at string, header map[string][]string, settings bool) []FieldError {
	bytes, lines := 0, 0
	for name, values := range header {
		bytes += size(name, values)
		lines += len(values)
	}
	if max(lines, len(header)) > MaxHeaderLines {
		return []FieldError{{at, fmt.Sprintf("must be at most %d values together", MaxHeaderLines)}}
	}
	if bytes > MaxHeaders { // and whatever else is wrong with so many
		return []FieldError{{at, fmt.Sprintf("must be at most %d B together", MaxHeaders)}}
	}
	var faults []FieldError
	spelling := make(map[string]string, len(header))
	for name, values := range header {
		fault := func(detail string) { faults = append(faults, FieldError{JSONPointer(at, name), detail}) }
		key := textproto.CanonicalMIMEHeaderKey(name)
		if other, twice := spelling[key]; twice {
			faults = append(faults, FieldError{
				JSONPointer(at, max(name, other)), "is the same header as " + min(name, other) + ": send a list of values",
			})
		}
		spelling[key] = name
		if detail := nameFault(name); detail != "" {
			fault(detail)
		}
		if len(values) == 0 {
			fault("must have a value")
		}
		if _, sealed := Sealed(values); settings && sealed {
			continue
		}
		if slices.ContainsFunc(values, func(v string) bool { return !isFieldValue(v) }) {
			fault("must not contain line breaks or other control characters")
		}
	}
	return sorted(faults)
}

// nameFault says what is wrong with a header's name; empty when nothing is.
func nameFault(name string) string {
	if !isFieldName(name) {
		return "must have a name of the characters that RFC 9110 allows: A-Z a-z 0-9 and !#$%&'*+-.^_`|~"
	}
	if ReservedHeader(name) {
		return "must not be set: Ringback or the connection sets it"
	}
	return ""
}

// CanonicalHeader gives headers that passed Validate their canonical names. It changes nothing where they have them.
func CanonicalHeader(header map[string][]string) map[string][]string {
	for name := range header {
		if textproto.CanonicalMIMEHeaderKey(name) == name {
			continue
		}
		canonical := make(map[string][]string, len(header))
		for name, values := range header {
			canonical[textproto.CanonicalMIMEHeaderKey(name)] = values
		}
		return canonical
	}
	return header
}
