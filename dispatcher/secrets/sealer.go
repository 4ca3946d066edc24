package secrets

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/internal/limitedlog"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/seal"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

// A Sealer seals and opens secrets.
type Sealer struct {
	box         *seal.Box
	log         *slog.Logger
	unopenedLog limitedlog.Log // for headers that cannot be opened
}

// New returns a Sealer.
func New(box *seal.Box, log *slog.Logger) *Sealer {
	return &Sealer{box: box, log: log, unopenedLog: limitedlog.Log{Logger: log, Interval: 10 * time.Second}}
}

// ErrCannotSeal is returned if stored secrets are sealed and this process has no key to seal another.
var ErrCannotSeal = &store.UnavailableError{
	Reason: "this process has no key to seal secrets, but stored secrets are sealed: start it with " + seal.Setting,
}

// An Owner is the owner of secrets. It names the AAD under which they are sealed.
type Owner store.SecretOwner

// aad returns the additional data that binds a sealed secret to its owner and use.
func (o Owner) aad(what string) string {
	if o.Lane == "" {
		return o.Namespace + "/" + o.Topic + "/" + what
	}
	return job.Queue(o).String() + "/" + what
}

// String names the owner for a person.
func (o Owner) String() string { return strings.TrimSuffix(o.aad(""), "/") }

// secretAAD returns the additional data of a signing secret.
func (o Owner) secretAAD(id string) string { return o.aad("secrets/" + id) }

// SealSecret returns a signing secret in its stored form.
func (s *Sealer) SealSecret(owner Owner, secret sign.Secret) policy.Sealed {
	return policy.Sealed(s.box.Seal(secret.Text(), owner.secretAAD(secret.ID())))
}

// OpenSecret opens a signing secret.
func (s *Sealer) OpenSecret(owner Owner, stored policy.Secret) (sign.Secret, error) {
	text, err := s.box.Open(string(stored.Value), owner.secretAAD(stored.ID))
	if err != nil {
		return sign.Secret{}, fmt.Errorf("open the secret %s of %s: %w", stored.ID, owner, err)
	}
	secret, err := sign.ParseSecret(text)
	if err != nil {
		return sign.Secret{}, fmt.Errorf("read the secret %s of %s: %w", stored.ID, owner, err)
	}
	return secret, nil
}

// CannotSeal reports whether some of the secrets are sealed, and this process could not seal another.
func (s *Sealer) CannotSeal(secrets []policy.Secret) bool {
	return !s.box.Encrypts() && s.hasStaleSecret(secrets)
}

// hasStaleSecret reports whether a secret is not sealed under the current key.
func (s *Sealer) hasStaleSecret(secrets []policy.Secret) bool {
	return slices.ContainsFunc(secrets, func(one policy.Secret) bool { return !s.box.Current(string(one.Value)) })
}
