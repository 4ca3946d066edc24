package job

import (
	"encoding/base64"
	"maps"
	"strings"
)

// HeaderSecret is the values of a secret header and the origin to which they may be sent.
type HeaderSecret struct {
	// Origin is the result of Origin for the URL that the values were set for; empty: any.
	Origin string
	Values []string
}

// Text encodes the secret as the plaintext to seal. ParseHeaderSecret decodes it.
func (s HeaderSecret) Text() string {
	return strings.Join(append([]string{s.Origin}, s.Values...), "\n") // values have no line breaks
}

// ParseHeaderSecret is the reverse of HeaderSecret.Text.
func ParseHeaderSecret(text string) HeaderSecret {
	all := strings.Split(text, "\n")
	return HeaderSecret{Origin: all[0], Values: all[1:]}
}

// sealedMark is the first byte of the stored value of a secret header. Clients cannot send it: it is a control
// character.
const sealedMark = "\x00"

// SealedValues returns the values that are stored for a secret header, given its sealed text.
func SealedValues(sealed string) []string { return []string{sealedMark + sealed} }

// Sealed is the reverse of SealedValues; ok reports whether the values are sealed.
func Sealed(values []string) (sealed string, ok bool) {
	if len(values) != 1 {
		return "", false
	}
	return strings.CutPrefix(values[0], sealedMark)
}

// OpenOthers returns headers with those opened that are sealed and are no credentials (SecretHeader), which only
// attempts open. err is that of one that could not be opened, and so is as it was.
func OpenOthers(
	header map[string][]string, open func(name, sealed string) (HeaderSecret, error),
) (_ map[string][]string, err error) {
	var opened map[string][]string
	for name, values := range header {
		sealed, ok := Sealed(values)
		if !ok || SecretHeader(name) {
			continue
		}
		secret, failed := open(name, sealed)
		if failed != nil {
			err = failed
			continue
		}
		if opened == nil {
			opened = maps.Clone(header)
		}
		opened[name] = secret.Values
	}
	if opened == nil {
		opened = header
	}
	return opened, err
}

// headerSize returns about the size of a header's lines in bytes. A sealed header counts with the size of its secret.
func headerSize(name string, values []string) (bytes int) {
	if sealed, ok := Sealed(values); ok {
		return len(name) + base64.RawStdEncoding.DecodedLen(len(sealed))
	}
	for _, v := range values {
		bytes += len(name) + len(v) + len(": \r\n")
	}
	return bytes
}
