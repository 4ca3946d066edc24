package job

import (
	"fmt"
	"net/textproto"
	"slices"
	"strings"
)

// reservedHeaders are set by Ringback or the connection. Names are as foldName returns them. Proxy is not a header, but
// CGI turns it into the variable HTTP_PROXY.
var reservedHeaders = map[string]bool{
	"connection": true, "keep-alive": true, "te": true, "trailer": true, "transfer-encoding": true, "upgrade": true,
	"host": true, "content-length": true, "expect": true, "proxy": true,
}

// reservedHeaderPrefixes are the prefixes of further reserved names.
var reservedHeaderPrefixes = []string{"proxy-", "webhook-", "ringback-"}

// ReservedHeader reports whether a header is set by Ringback or the connection, so that jobs cannot set it. Names are
// compared as CGI receivers do: Webhook_Id equals Webhook-Id.
func ReservedHeader(name string) bool {
	name = foldName(name)
	if reservedHeaders[name] {
		return true
	}
	for _, prefix := range reservedHeaderPrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// SameHeader reports whether two names are equal, compared as ReservedHeader does.
func SameHeader(a, b string) bool { return len(a) == len(b) && foldName(a) == foldName(b) }

// foldName returns a header name in lower case with a hyphen for every character that is not a letter or digit, since
// CGI programs cannot distinguish such names.
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

// checkHeaders validates headers with names in any case. at is the JSON pointer of the object. Sealed values are
// allowed in settings only.
func checkHeaders(at string, header map[string][]string, settings bool) []FieldError {
	bytes, lines := sizeOf(header)
	if lines > MaxHeaderLines {
		return []FieldError{{at, fmt.Sprintf("must be at most %d values together", MaxHeaderLines)}}
	}
	if bytes > MaxHeaders { // report no further errors
		return []FieldError{{at, fmt.Sprintf("must be at most %d B together", MaxHeaders)}}
	}
	var errs []FieldError
	spelling := make(map[string]string, len(header))
	for name, values := range header {
		add := func(detail string) { errs = append(errs, FieldError{JSONPointer(at, name), detail}) }
		key := textproto.CanonicalMIMEHeaderKey(name)
		if other, twice := spelling[key]; twice {
			errs = append(errs, FieldError{
				JSONPointer(at, max(name, other)),
				"is the same header as " + min(name, other) + ": use one list of values",
			})
		}
		spelling[key] = name
		if detail := checkHeaderName(name); detail != "" {
			add(detail)
		}
		if len(values) == 0 {
			add("must have a value")
		}
		if _, sealed := Sealed(values); settings && sealed {
			continue
		}
		if slices.ContainsFunc(values, func(v string) bool { return !IsFieldValue(v) }) {
			add("must not contain line breaks or other control characters")
		}
	}
	return sortFieldErrors(errs)
}

// HeadersFit reports whether headers are not more than a job may have.
func HeadersFit(header map[string][]string) bool {
	bytes, lines := sizeOf(header)
	return bytes <= MaxHeaders && lines <= MaxHeaderLines
}

// sizeOf returns the size of headers together, in bytes and in lines, at least one for each.
func sizeOf(header map[string][]string) (bytes, lines int) {
	for name, values := range header {
		bytes += headerSize(name, values)
		lines += len(values)
	}
	return bytes, max(lines, len(header))
}

// checkHeaderName returns the violated rule of a header name; empty: valid.
func checkHeaderName(name string) string {
	if !IsFieldName(name) {
		return "must have a name of A-Z a-z 0-9 and !#$%&'*+-.^_`|~ (RFC 9110)"
	}
	if ReservedHeader(name) {
		return "must not be set: Ringback or the connection sets it"
	}
	return ""
}

// CanonicalHeader returns valid headers with canonical names; header itself if all names are canonical.
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
