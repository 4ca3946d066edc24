package sign

import (
	"fmt"
	"net/http"
	"strings"
)

// headerValues returns the values of a header with its name in any case.
func headerValues(header http.Header, canonical string) []string {
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

// singleValue returns the value of a header that must occur once: of two it is unknown which was signed.
func singleValue(header http.Header, canonical string, most int) (string, error) {
	found := headerValues(header, canonical)
	name := strings.ToLower(canonical)
	switch {
	case len(found) == 0 || len(found) == 1 && found[0] == "":
		return "", fmt.Errorf("%w: %s is missing", ErrMissing, name)
	case len(found) > 1:
		return "", fmt.Errorf("%w: %s occurs more than once", ErrMissing, name)
	case len(found[0]) > most:
		return "", fmt.Errorf("%w: %s is longer than %d bytes", ErrMissing, name, most)
	}
	return found[0], nil
}

// splitSignatures splits values at spaces into at most MaxSignatures parts of the first maxSignatureHeader bytes.
func splitSignatures(values []string) []string {
	var parts []string
	left := maxSignatureHeader
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
