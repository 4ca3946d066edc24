// Package utf8text reads texts that must be UTF-8, as editors and shells write them. It alone knows byte order marks.
package utf8text

import (
	"bytes"
	"errors"
)

// ErrUTF16 is the error of a text in UTF-16.
var ErrUTF16 = errors.New("is in UTF-16: save or send it as UTF-8")

// mark is the byte order mark of UTF-8.
var mark = []byte("\xef\xbb\xbf")

// Trim returns a text without the byte order mark that it may begin with: readers may ignore it (RFC 8259, 8.1). A text
// in UTF-16, with a mark or without, is returned as it is, with ErrUTF16.
func Trim(text []byte) ([]byte, error) {
	if isUTF16(text) {
		return text, ErrUTF16
	}
	return bytes.TrimPrefix(text, mark), nil
}

// isUTF16 reports whether a text begins with a byte order mark of UTF-16, or with two characters of ASCII in it.
func isUTF16(text []byte) bool {
	if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) {
		return true
	}
	return len(text) >= 4 && (isASCII(text[0], text[1]) && isASCII(text[2], text[3]) ||
		isASCII(text[1], text[0]) && isASCII(text[3], text[2]))
}

// isASCII reports whether two bytes of UTF-16 are a character of ASCII that texts have.
func isASCII(high, low byte) bool {
	return high == 0 && (' ' <= low && low <= '~' || low == '\t' || low == '\n' || low == '\r')
}
