package sign

import (
	"fmt"
	"net/http"
	"strings"
)

// values are those of a header, whatever the case of its name.
func values(header http.Header, canonical string) []string {
	if found := header[canonical]; len(found) > 0 {
		return found
	}
	var found []string
	for name, of := range header {
		if strings.EqualFold(name, canonical) {
			found = append(found, of...)
		}
	}
	return found
}

// single is the value of a header that must be there once. A second value would leave open which was signed.
func single(header http.Header, canonical string, most int) (string, error) {
	found := values(header, canonical)
	name := strings.ToLower(canonical)
	switch {
	case len(found) == 0 || len(found) == 1 && found[0] == "":
		return "", fmt.Errorf("%w: there is no %s", ErrMissing, name)
	case len(found) > 1:
		return "", fmt.Errorf("%w: there is more than one %s", ErrMissing, name)
	case len(found[0]) > most:
		return "", fmt.Errorf("%w: the %s is longer than %d bytes", ErrMissing, name, most)
	}
	return found[0], nil
}

// fields takes values apart at spaces: at most MaxSignatures parts, of the first maxHeader bytes.
func fields(values []string) []string {
	var parts []string
	left := maxHeader
	for _, value := range values {
		for value = value[:min(len(value), left)]; value != ""; {
			part, rest, _ := strings.Cut(value, " ")
			left -= len(value) - len(rest)
			value = rest
			if part == "" {
				continue
			}
			if parts = append(parts, part); len(parts) == MaxSignatures {
				return parts
			}
		}
	}
	return parts
}
