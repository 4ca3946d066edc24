package request

import (
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/sign"
)

// MaxSecretBytes bounds a request to add a secret, in bytes.
const MaxSecretBytes = 4 << 10

// Kinds of secrets.
const (
	SecretHMAC    = "hmac"    // v1: whsec_
	SecretEd25519 = "ed25519" // v1a: whsk_
)

// DecodeSecret reads a secret, or generates one of the requested kind. Its errors do not repeat the secret.
func DecodeSecret(text []byte) (sign.Secret, *response.Problem) {
	if text == nil {
		return sign.NewSecret(), nil
	}
	var d decoder
	var given, kind string
	d.read("", text, "a secret", fields{"secret": set(&given, d.name), "kind": set(&kind, d.name)})
	var secret sign.Secret
	var err error
	switch {
	case given != "" && kind != "":
		d.errors = append(d.errors, job.MutuallyExclusive("/kind", "secret"))
	case given != "":
		if secret, err = sign.ParseSecret(given); err != nil {
			d.AddError("/secret", err.Error())
		}
	case kind == SecretEd25519:
		secret = sign.NewKey()
	case kind == SecretHMAC, kind == "":
		secret = sign.NewSecret()
	default:
		d.AddError("/kind", "must be "+SecretHMAC+" or "+SecretEd25519)
	}
	return secret, d.problem(nil)
}
