package api

import (
	"errors"
	"net/http"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

// maxSecretForm bounds a request that brings a secret, in bytes.
const maxSecretForm = 4 << 10

// The kinds of secrets.
const (
	SecretHMAC    = "hmac"    // v1: whsec_
	SecretEd25519 = "ed25519" // v1a: whsk_
)

// PathNewSecretOwner names the topic or lane of a path that a secret may begin.
func PathNewSecretOwner(r *http.Request) (store.SecretOwner, error) {
	if r.PathValue("lane") == "" {
		topic, err := PathNewTopic(r)
		return store.SecretOwner{Namespace: job.DefaultNamespace, Topic: topic}, err
	}
	q, err := PathNewLane(r)
	return store.SecretOwner(q), err
}

// PathSecretOwner names the topic or lane of the path.
func PathSecretOwner(r *http.Request) (store.SecretOwner, error) {
	if r.PathValue("lane") == "" {
		topic, err := PathTopic(r)
		return store.SecretOwner{Namespace: job.DefaultNamespace, Topic: topic}, err
	}
	q, err := PathLane(r)
	return store.SecretOwner(q), err
}

// addSecret puts a secret before the others, given or made, and shows it: the one answer that shows any.
func (a *api) addSecret(w http.ResponseWriter, r *http.Request) error {
	owner, err := PathNewSecretOwner(r)
	if err != nil {
		return err
	}
	text, err := ReadOptionalJSON(w, r, maxSecretForm)
	if err != nil {
		return err
	}
	secret, p := DecodeSecret(text)
	if p != nil {
		return p
	}
	added, err := a.service.AddSecret(r.Context(), owner, secret)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	o := NewBuffer()
	defer o.Wipe()
	o.Open()
	o.Secret(added)
	if secret.Asymmetric() {
		o.Text("kind", SecretEd25519)
		o.Text("secret", secret.Text())
		o.Text("public_key", secret.PublicKey())
	} else {
		o.Text("kind", SecretHMAC)
		o.Text("secret", secret.Text())
	}
	o.Close()
	o.Send(w, http.StatusCreated)
	return nil
}

// Wipe is free for an answer that held a secret.
func (o *Buffer) Wipe() {
	clear(o.b)
	o.Free()
}

// DecodeSecret reads a secret, or makes one of the kind that is asked for. Nothing repeats what was sent.
func DecodeSecret(text []byte) (sign.Secret, *Problem) {
	if text == nil {
		return sign.NewSecret(), nil
	}
	var d decoder
	var given, kind string
	for name, value := range d.object("", text) {
		switch string(name) {
		case "secret":
			given = optional(isNull(value), func() string { return d.name("/secret", value) })
		case "kind":
			kind = optional(isNull(value), func() string { return d.name("/kind", value) })
		default:
			d.unknownField("", name, "a secret")
		}
	}
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

// Secret writes what is shown of a secret that is stored.
func (o *Buffer) Secret(s policy.Secret) {
	o.Text("id", s.ID)
	o.Time("created_at", s.CreatedAt)
}

// secrets lists secrets, the newest first.
func (a *api) secrets(w http.ResponseWriter, r *http.Request) error {
	owner, err := PathSecretOwner(r)
	if err != nil {
		return err
	}
	all, err := a.service.Secrets(r.Context(), owner)
	if err != nil {
		return noTopic(err)
	}
	o := NewBuffer()
	defer o.Free()
	o.Open()
	o.Array("secrets")
	for _, s := range all {
		o.Open()
		o.Secret(s)
		o.Close()
	}
	o.CloseArray()
	o.Close()
	o.Send(w, http.StatusOK)
	return nil
}

// removeSecret removes one.
func (a *api) removeSecret(w http.ResponseWriter, r *http.Request) error {
	owner, err := PathSecretOwner(r)
	if err == nil {
		err = RequireNoBody(r)
	}
	if err != nil {
		return err
	}
	err = a.service.RemoveSecret(r.Context(), owner, r.PathValue("id"))
	if errors.Is(err, store.ErrNotFound) {
		return NewProblem(http.StatusNotFound, "there is no such secret")
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// keys lists the public keys, by which receivers verify signatures of ed25519 keys.
func (a *api) keys(w http.ResponseWriter, r *http.Request) error {
	owner, err := PathSecretOwner(r)
	if err != nil {
		return err
	}
	all, err := a.service.PublicKeys(r.Context(), owner)
	if err != nil {
		return noTopic(err)
	}
	o := NewBuffer()
	defer o.Free()
	o.Open()
	o.Array("keys")
	for _, k := range all {
		o.Open()
		o.Text("id", k.ID)
		o.Time("created_at", k.CreatedAt)
		o.Text("public_key", k.Key)
		o.Close()
	}
	o.CloseArray()
	o.Close()
	o.Send(w, http.StatusOK)
	return nil
}
