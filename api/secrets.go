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
	kindShared = "hmac"    // v1: whsec_
	kindKey    = "ed25519" // v1a: whsk_
)

// newOwner names the topic or lane of a path that a secret may begin.
func newOwner(r *http.Request) (store.SecretOwner, error) {
	if r.PathValue("lane") == "" {
		topic, err := newTopic(r)
		return store.SecretOwner{Namespace: job.DefaultNamespace, Topic: topic}, err
	}
	q, err := newLane(r)
	return store.SecretOwner(q), err
}

// pathOwner names the topic or lane of the path.
func pathOwner(r *http.Request) (store.SecretOwner, error) {
	if r.PathValue("lane") == "" {
		topic, err := pathTopic(r)
		return store.SecretOwner{Namespace: job.DefaultNamespace, Topic: topic}, err
	}
	q, err := pathLane(r)
	return store.SecretOwner(q), err
}

// addSecret puts a secret before the others, given or made, and shows it: the one answer that shows any.
func (a *api) addSecret(w http.ResponseWriter, r *http.Request) error {
	owner, err := newOwner(r)
	if err != nil {
		return err
	}
	text, err := readOptional(w, r, maxSecretForm)
	if err != nil {
		return err
	}
	secret, p := decodeSecret(text)
	if p != nil {
		return p
	}
	added, err := a.service.AddSecret(r.Context(), owner, secret)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	o := newOut()
	defer o.wipe()
	o.open()
	o.secret(added)
	if secret.Asymmetric() {
		o.text("kind", kindKey)
		o.text("secret", secret.Text())
		o.text("public_key", secret.PublicKey())
	} else {
		o.text("kind", kindShared)
		o.text("secret", secret.Text())
	}
	o.close()
	o.send(w, http.StatusCreated)
	return nil
}

// wipe is free for an answer that held a secret.
func (o *out) wipe() {
	clear(o.b)
	o.free()
}

// decodeSecret reads a secret, or makes one of the kind that is asked for. Nothing repeats what was sent.
func decodeSecret(text []byte) (sign.Secret, *problem) {
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
			d.unknown("", name, "a secret")
		}
	}
	var secret sign.Secret
	var err error
	switch {
	case given != "" && kind != "":
		d.faults = append(d.faults, job.MutuallyExclusive("/kind", "secret"))
	case given != "":
		if secret, err = sign.ParseSecret(given); err != nil {
			d.fault("/secret", err.Error())
		}
	case kind == kindKey:
		secret = sign.NewKey()
	case kind == kindShared, kind == "":
		secret = sign.NewSecret()
	default:
		d.fault("/kind", "must be "+kindShared+" or "+kindKey)
	}
	return secret, d.problem(nil)
}

// secret writes what is shown of a secret that is stored.
func (o *out) secret(s policy.Secret) {
	o.text("id", s.ID)
	o.time("created_at", s.CreatedAt)
}

// secrets lists secrets, the newest first.
func (a *api) secrets(w http.ResponseWriter, r *http.Request) error {
	owner, err := pathOwner(r)
	if err != nil {
		return err
	}
	all, err := a.service.Secrets(r.Context(), owner)
	if err != nil {
		return noTopic(err)
	}
	o := newOut()
	defer o.free()
	o.open()
	o.array("secrets")
	for _, s := range all {
		o.open()
		o.secret(s)
		o.close()
	}
	o.closeArray()
	o.close()
	o.send(w, http.StatusOK)
	return nil
}

// removeSecret removes one.
func (a *api) removeSecret(w http.ResponseWriter, r *http.Request) error {
	owner, err := pathOwner(r)
	if err == nil {
		err = noBody(r)
	}
	if err != nil {
		return err
	}
	err = a.service.RemoveSecret(r.Context(), owner, r.PathValue("id"))
	if errors.Is(err, store.ErrNotFound) {
		return refuse(http.StatusNotFound, "there is no such secret")
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// keys lists the public keys, by which receivers verify signatures of ed25519 keys.
func (a *api) keys(w http.ResponseWriter, r *http.Request) error {
	owner, err := pathOwner(r)
	if err != nil {
		return err
	}
	all, err := a.service.PublicKeys(r.Context(), owner)
	if err != nil {
		return noTopic(err)
	}
	o := newOut()
	defer o.free()
	o.open()
	o.array("keys")
	for _, k := range all {
		o.open()
		o.text("id", k.ID)
		o.time("created_at", k.CreatedAt)
		o.text("public_key", k.Key)
		o.close()
	}
	o.closeArray()
	o.close()
	o.send(w, http.StatusOK)
	return nil
}
