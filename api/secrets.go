package api

import (
	"errors"
	"net/http"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/store"
)

// addSecret adds a secret, given or generated, as the newest. Its answer is the only one that contains the secret.
func (a *api) addSecret(w http.ResponseWriter, r *http.Request) error {
	owner, err := request.PathNewSecretOwner(r)
	if err != nil {
		return err
	}
	text, err := request.ReadOptionalJSON(w, r, request.MaxSecretBytes)
	if err != nil {
		return err
	}
	secret, p := request.DecodeSecret(text)
	if p != nil {
		return p
	}
	added, err := a.service.AddSecret(r.Context(), owner, secret)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	o := response.NewBuffer()
	defer o.Wipe()
	o.Open()
	o.Secret(added)
	if secret.Asymmetric() {
		o.Text("kind", request.SecretEd25519)
		o.Text("secret", secret.Text())
		o.Text("public_key", secret.PublicKey())
	} else {
		o.Text("kind", request.SecretHMAC)
		o.Text("secret", secret.Text())
	}
	o.Close()
	o.Send(w, http.StatusCreated)
	return nil
}

// secrets lists secrets, the newest first.
func (a *api) secrets(w http.ResponseWriter, r *http.Request) error {
	owner, err := request.PathSecretOwner(r)
	if err != nil {
		return err
	}
	all, err := a.service.Secrets(r.Context(), owner)
	if err != nil {
		return noTopic(err)
	}
	o := response.NewBuffer()
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

// removeSecret removes a secret.
func (a *api) removeSecret(w http.ResponseWriter, r *http.Request) error {
	owner, err := request.PathSecretOwner(r)
	if err == nil {
		err = request.RequireNoBody(r)
	}
	if err != nil {
		return err
	}
	err = a.service.RemoveSecret(r.Context(), owner, r.PathValue("id"))
	if errors.Is(err, store.ErrNotFound) {
		return response.NewProblem(http.StatusNotFound, "no such secret")
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// keys lists the public keys of ed25519 secrets.
func (a *api) keys(w http.ResponseWriter, r *http.Request) error {
	owner, err := request.PathSecretOwner(r)
	if err != nil {
		return err
	}
	all, err := a.service.PublicKeys(r.Context(), owner)
	if err != nil {
		return noTopic(err)
	}
	o := response.NewBuffer()
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
