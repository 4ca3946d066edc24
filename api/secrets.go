package api

import (
	"net/http"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// secretEndpoints are those of the secrets of topics, or of lanes.
func (a *api) secretEndpoints(owner string) []endpoint {
	return []endpoint{
		at("GET "+owner+"/secrets", access.ReadSecrets, ofPath, a.on(onStore.secrets), paged()),
		at("POST "+owner+"/secrets", access.AddSecret, ofPath, a.on(onStore.addSecret), ofSettings),
		at("DELETE "+owner+"/secrets/{id}", access.RemoveSecret, ofPath, a.on(onStore.removeSecret), ofSettings),
		at("GET "+owner+"/keys", access.ReadKeys, ofPath, a.on(onStore.keys), paged()),
	}
}

// addSecret adds a secret, given or generated, as the newest. Its answer is the only one that contains the secret.
func (a onStore) addSecret(w http.ResponseWriter, r *http.Request) error {
	owner, err := request.PathNewQueue(r)
	if err != nil {
		return err
	}
	ifRevision, err := request.IfRevision(r)
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
	added, err := a.store.AddSecret(r.Context(), owner, secret, changeOptions(r, ifRevision))
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	kind := request.SecretHMAC
	if secret.Asymmetric() {
		kind = request.SecretEd25519
	}
	response.Answer(w, http.StatusCreated, func(o *response.Buffer) {
		o.Members(&added)
		o.Text("kind", kind)
		o.Text("secret", secret.Text())
		o.TextOrNull("public_key", secret.PublicKey())
	})
	return nil
}

// secrets lists secrets, the newest first.
func (a onStore) secrets(w http.ResponseWriter, r *http.Request) error {
	owner, err := request.PathQueue(r)
	if err != nil {
		return err
	}
	p, err := pageOf(r, request.Secrets)
	if err != nil {
		return err
	}
	all, err := a.store.Secrets(r.Context(), owner)
	if err != nil {
		return noTopic(err)
	}
	return answerPage(w, p, all, members, func(s *policy.Secret) string { return s.ID })
}

// removeSecret removes a secret.
func (a onStore) removeSecret(w http.ResponseWriter, r *http.Request) error {
	owner, ifRevision, err := request.Bodiless(r, request.PathQueue)
	if err != nil {
		return err
	}
	err = a.store.RemoveSecret(r.Context(), owner, r.PathValue("id"), changeOptions(r, ifRevision))
	if err != nil {
		return orNotFound(err, "no such secret")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// keys lists the public keys of ed25519 secrets.
func (a onStore) keys(w http.ResponseWriter, r *http.Request) error {
	owner, err := request.PathQueue(r)
	if err != nil {
		return err
	}
	p, err := pageOf(r, request.Secrets)
	if err != nil {
		return err
	}
	all, err := a.store.PublicKeys(r.Context(), owner)
	if err != nil {
		return noTopic(err)
	}
	return answerPage(w, p, all, members, func(k *store.PublicKey) string { return k.ID })
}
