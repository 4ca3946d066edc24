package request

import (
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/policy"
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

// chain reads certificates in PEM.
func (d *decoder) chain(at string, raw []byte) string {
	text := d.text(at, raw)
	if raw[0] != '"' {
		return ""
	}
	chain, err := certificateChain(text)
	if err != nil {
		d.AddError(at, err.Error())
	}
	return chain
}

// privateKey reads a key in PEM.
func (d *decoder) privateKey(at, text string) policy.Sealed {
	key, err := certificateKey(text)
	if err != nil {
		d.AddError(at, err.Error())
	}
	return policy.Sealed(key)
}
