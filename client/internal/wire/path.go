package wire

import (
	"fmt"
	"net/url"
	"strings"
)

// Path returns an escaped path of literal and variable parts: those in even places are literal.
func Path(parts ...string) (string, error) {
	var b strings.Builder
	for i, p := range parts {
		if i%2 == 0 {
			b.WriteString(p)
			continue
		}
		if p == "" || p == "." || p == ".." {
			return "", fmt.Errorf("%q is not a name that can be in a path", p)
		}
		b.WriteString(url.PathEscape(p))
	}
	return b.String(), nil
}
