package secrets

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ringback/ringback/dispatcher/seal"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

// A Sealer seals and opens secrets.
type Sealer struct {
	box         *seal.Box
	log         *slog.Logger
	unopenedLog logs.Limited // for headers that cannot be opened
}

// New returns a Sealer.
func New(box *seal.Box, log *slog.Logger) *Sealer {
	return &Sealer{box: box, log: log, unopenedLog: logs.Limited{Logger: log, Interval: 10 * time.Second}}
}

// ErrCannotSeal is returned if stored secrets are sealed and this process has no key to seal another.
var ErrCannotSeal = &store.UnavailableError{
	Reason: "this process has no key to seal secrets, but stored secrets are sealed: start it with " + seal.Setting,
}

// nameOf returns the name of an owner of secrets: a lane, or a topic, whose queue has no lane.
func nameOf(owner job.Queue) string {
	if owner.Lane == "" {
		return owner.Namespace + "/" + owner.Topic
	}
	return owner.String()
}

// aad returns the additional data that binds a sealed secret to its owner and use.
func aad(owner job.Queue, use string) string { return nameOf(owner) + "/" + use }

// secretAAD returns the additional data of a signing secret.
func secretAAD(owner job.Queue, id string) string { return aad(owner, "secrets/"+id) }

// SealSecret returns a signing secret in its stored form.
func (s *Sealer) SealSecret(owner job.Queue, secret sign.Secret) policy.Sealed {
	return policy.Sealed(s.box.Seal(secret.Text(), secretAAD(owner, secret.ID())))
}

// OpenSecret opens a signing secret.
func (s *Sealer) OpenSecret(owner job.Queue, stored policy.Secret) (sign.Secret, error) {
	text, err := s.box.Open(string(stored.Value), secretAAD(owner, stored.ID))
	if err != nil {
		return sign.Secret{}, fmt.Errorf("open the secret %s of %s: %w", stored.ID, nameOf(owner), err)
	}
	secret, err := sign.ParseSecret(text)
	if err != nil {
		return sign.Secret{}, fmt.Errorf("read the secret %s of %s: %w", stored.ID, nameOf(owner), err)
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
