// This part of the package checks the texts of client certificates and their keys, in PEM. It does not check that they
// match.

package request

import (
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/ringback/ringback/internal/fileread"
)

// Bounds of a client certificate, in bytes.
const (
	MaxChainBytes = 64 << 10
	MaxKeyBytes   = 16 << 10
)

// certificateChain returns certificates without the byte order mark before them. It refuses anything else, private keys
// above all, because the chain is shown.
func certificateChain(text string) (string, error) {
	if len(text) > MaxChainBytes {
		return "", fmt.Errorf("must be at most %d B", MaxChainBytes)
	}
	chain, err := fileread.PEMText([]byte(text))
	if err != nil {
		return "", err
	}
	others, certificates := false, 0
	rest := chain
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		certificates++
		others = others || block.Type != "CERTIFICATE"
	}
	if others || strings.Contains(text, "PRIVATE KEY") {
		return "", errors.New("must contain certificates only: put the private key into key")
	}
	if certificates == 0 {
		return "", errors.New("must be certificates in PEM, the client's own first: -----BEGIN CERTIFICATE-----")
	}
	return string(chain), nil
}

// certificateKey returns a private key without the text before it.
func certificateKey(text string) (string, error) {
	const mark = "-----BEGIN "
	begin := strings.Index(text, mark)
	switch {
	case len(text) > MaxKeyBytes:
		return "", fmt.Errorf("must be at most %d B", MaxKeyBytes)
	case begin < 0:
		return "", errors.New("must be a private key in PEM: -----BEGIN PRIVATE KEY-----")
	case !holdsKey([]byte(text[begin:])):
		return "", errors.New("must contain an unencrypted private key in PEM: -----BEGIN PRIVATE KEY-----")
	default:
		return text[begin:], nil
	}
}

// holdsKey reports whether a text in PEM contains a private key that is not encrypted.
func holdsKey(text []byte) bool {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return false
		}
		if block.Headers["DEK-Info"] == "" && strings.HasSuffix(block.Type, "PRIVATE KEY") &&
			block.Type != "ENCRYPTED PRIVATE KEY" {
			return true
		}
	}
}
