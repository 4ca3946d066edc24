package job

import (
	"encoding/base64"
	"strings"
)

// A HeaderSecret is what a header holds that carries a secret, and where that may go.
type HeaderSecret struct {
	// Origin is the scheme, host and port that the values were given for, as Origin spells them; empty: any.
	Origin string
	Values []string
}

// Text is the secret in the form in which it is sealed; ParseHeaderSecret reads it.
func (s HeaderSecret) Text() string {
	return strings.Join(append([]string{s.Origin}, s.Values...), "\n") // no value holds line breaks
}

// ParseHeaderSecret reads what Text gave.
func ParseHeaderSecret(text string) HeaderSecret {
	all := strings.Split(text, "\n")
	return HeaderSecret{Origin: all[0], Values: all[1:]}
}

// sealedMark begins the value under which a header's secret is stored. No header has it that a client sends: it is a
// control character.
const sealedMark = "\x00"

// SealedValues are stored instead of a header's values that are a secret. sealed is the secret in its sealed form.
func SealedValues(sealed string) []string { return []string{sealedMark + sealed} }

// Sealed is the reverse of SealedValues; ok reports whether the values are sealed.
func Sealed(values []string) (sealed string, ok bool) {
	if len(values) != 1 {
		return "", false
	}
	return strings.CutPrefix(values[0], sealedMark)
}

// size is about how many bytes the lines of a header take. A sealed one counts as long as its secret.
func size(name string, values []string) (bytes int) {
	if sealed, ok := Sealed(values); ok {
		return len(name) + base64.RawStdEncoding.DecodedLen(len(sealed))
	}
	for _, v := range values {
		bytes += len(name) + len(v) + len(": \r\n")
	}
	return bytes
}
