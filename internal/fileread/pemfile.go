// This part of the package reads files in PEM so that none of their blocks is left out silently: encoding/pem passes
// over what it cannot read, such as a block after a byte order mark.

package fileread

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/ringback/ringback/internal/utf8text"
)

// errUnreadable is the error of a text with a block that encoding/pem passes over.
var errUnreadable = errors.New(
	"has a block in PEM that cannot be read: -----BEGIN must be at the start of a line, and the lines after it base64")

// ReadPEM returns the content of a file. It may have no block, and none that cannot be read.
func ReadPEM(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err // it names the file
	}
	if text, err = PEMText(text); err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}
	return text, nil
}

// PEMText returns a text without the byte order mark that it may begin with, or an error if a block cannot be read.
func PEMText(text []byte) ([]byte, error) {
	text, err := utf8text.Trim(text)
	if err != nil {
		return nil, err
	}
	read := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		read++
	}
	if bytes.Count(text, []byte("-----BEGIN ")) != read {
		return nil, errUnreadable
	}
	return text, nil
}

// KeyPair reads a certificate with its chain, and its key.
func KeyPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := ReadPEM(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := ReadPEM(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}
