package request

import (
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/policy"
)

// Bounds of a client certificate, in bytes.
const (
	MaxChainBytes = 64 << 10
	MaxKeyBytes   = 16 << 10
)

// certificate reads a client certificate. The stored key is kept when the key is left out or redacted; with merge the
// stored chain is kept too. It does not check that key and chain match. Null gives nil.
func (d *decoder) certificate(at string, value []byte, stored *policy.ClientCert, merge bool) *policy.ClientCert {
	if isNull(value) {
		return nil
	}
	var c policy.ClientCert
	if stored != nil {
		c.Key = stored.Key
		if merge {
			c.Chain = stored.Chain
		}
	}
	before := len(d.errors)
	d.read(at, value, "a client certificate", fields{
		"chain": func(at string, raw []byte) { c.Chain = d.chain(at, raw) },
		"key": func(at string, raw []byte) {
			switch text := d.text(at, raw); {
			case raw[0] != '"':
			case text != response.Redacted:
				c.Key = d.privateKey(at, text)
			case stored == nil:
				d.redactedPlaceholder(at)
			}
		},
	})
	if len(d.errors) == before {
		if c.Chain == "" {
			d.AddError(at+"/chain", "is required")
		}
		if c.Key == "" {
			d.AddError(at+"/key", "is required")
		}
	}
	return &c
}

// chain reads certificates in PEM. It refuses anything else, private keys above all, because the chain is shown.
func (d *decoder) chain(at string, raw []byte) string {
	text := d.text(at, raw)
	if len(text) > MaxChainBytes {
		d.AddError(at, fmt.Sprintf("must be at most %d B", MaxChainBytes))
		return ""
	}
	others, certificates := false, 0
	rest := []byte(text)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		certificates++
		others = others || block.Type != "CERTIFICATE"
	}
	if others || strings.Contains(text, "PRIVATE KEY") {
		d.AddError(at, "must contain certificates only: put the private key into key")
	} else if raw[0] == '"' && certificates == 0 {
		d.AddError(at, "must be certificates in PEM, the client's own first: -----BEGIN CERTIFICATE-----")
	}
	return text
}

// privateKey reads a key in PEM. Text before it is dropped.
func (d *decoder) privateKey(at, text string) policy.Sealed {
	const mark = "-----BEGIN "
	begin := strings.Index(text, mark)
	switch {
	case len(text) > MaxKeyBytes:
		d.AddError(at, fmt.Sprintf("must be at most %d B", MaxKeyBytes))
	case begin < 0:
		d.AddError(at, "must be a private key in PEM: -----BEGIN PRIVATE KEY-----")
	case !holdsKey([]byte(text[begin:])):
		d.AddError(at, "must contain an unencrypted private key in PEM: -----BEGIN PRIVATE KEY-----")
	default:
		return policy.Sealed(text[begin:])
	}
	return ""
}

// holdsKey reports whether a text in PEM contains a private key that is not encrypted.
func holdsKey(text []byte) bool {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return false
		}
		if block.Headers["DEK-Info"] == "" && strings.HasSuffix(block.Type, "PRIVATE KEY") && block.Type != "ENCRYPTED PRIVATE KEY" {
			return true
		}
	}
}
