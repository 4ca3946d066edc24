package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/seal"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

// A secretScope is the owner of secrets. It names the AAD under which they are sealed.
type secretScope store.SecretOwner

// aad returns the additional data that binds a sealed secret to its owner and use.
func (o secretScope) aad(what string) string {
	if o.Lane == "" {
		return o.Namespace + "/" + o.Topic + "/" + what
	}
	return job.Queue(o).String() + "/" + what
}

// String names the owner for a person.
func (o secretScope) String() string { return strings.TrimSuffix(o.aad(""), "/") }

// secretAAD is where a secret is sealed.
func (o secretScope) secretAAD(id string) string { return o.aad("secrets/" + id) }

// AddSecret puts a secret before the others of its owner: from then on all of them sign. The same secret again changes
// nothing, unless it cannot be opened any more. A *job.InvalidError when there are policy.MaxSecrets already, or maxAsymmetric of its kind; a lane's secrets stand for those of its topic.
func (d *Dispatcher) AddSecret(ctx context.Context, owner store.SecretOwner, secret sign.Secret) (policy.Secret, error) {
	sealed := d.opts.Seal.Seal(secret.Text(), secretScope(owner).secretAAD(secret.ID()))
	added := policy.Secret{ID: secret.ID(), CreatedAt: job.Millis(time.Now()), Value: policy.Sealed(sealed)}
	err := d.changeSecrets(ctx, owner, func(secrets []policy.Secret) ([]policy.Secret, error) {
		if i := indexOfSecret(secrets, added.ID); i >= 0 {
			if _, err := d.open(secretScope(owner), secrets[i]); err == nil {
				added = secrets[i]
				return nil, errNoChange
			}
			// The key under which it was sealed is gone.
			added.CreatedAt = secrets[i].CreatedAt
			secrets = slices.Clone(secrets)
			secrets[i] = added
			return secrets, nil
		}
		if d.cannotSeal(secrets) {
			return nil, errCannotSeal
		}
		if len(secrets) >= policy.MaxSecrets {
			return nil, invalid("/secret", fmt.Sprintf("is one too many: there are %d, remove one of them first", len(secrets)))
		}
		if secret.Asymmetric() && d.asymmetric(secretScope(owner), secrets) >= maxAsymmetric {
			return nil, invalid("/secret", fmt.Sprintf("is one ed25519 key too many: there are %d, remove one of them first", maxAsymmetric))
		}
		return append([]policy.Secret{added}, secrets...), nil
	})
	return added, err
}

// maxAsymmetric is how many of an owner's secrets are ed25519 keys at most, enough to put a new one in the place of an
// old one: each attempt is signed with all of them, which costs many times what the other secrets cost.
const maxAsymmetric = 2

// asymmetric counts the ed25519 keys among secrets, as far as they can be opened.
func (d *Dispatcher) asymmetric(owner secretScope, secrets []policy.Secret) (n int) {
	for _, s := range secrets {
		if secret, err := d.open(owner, s); err == nil && secret.Asymmetric() {
			n++
		}
	}
	return n
}

// errCannotSeal: the stored secrets are sealed, and this process has no key to seal another.
var errCannotSeal = &store.UnavailableError{
	Reason: "this process has no key to seal secrets, but stored secrets are sealed: start it with " + seal.Setting,
}

// cannotSeal reports whether some of the secrets are sealed, and this process could not seal another.
func (d *Dispatcher) cannotSeal(secrets []policy.Secret) bool {
	return !d.opts.Seal.Encrypts() && d.hasStaleSecret(secrets)
}

// Secrets lists an owner's secrets, the newest first, without what they are.
func (d *Dispatcher) Secrets(ctx context.Context, owner store.SecretOwner) ([]policy.Secret, error) {
	if owner.Lane == "" {
		topic, err := d.Topic(ctx, owner.Namespace, owner.Topic)
		return topic.Policy.Secrets, err
	}
	lane, err := d.Lane(ctx, job.Queue(owner))
	return lane.Settings.Secrets, err
}

// RemoveSecret removes one. store.ErrNotFound.
func (d *Dispatcher) RemoveSecret(ctx context.Context, owner store.SecretOwner, id string) error {
	return d.changeSecrets(ctx, owner, func(secrets []policy.Secret) ([]policy.Secret, error) {
		i := indexOfSecret(secrets, id)
		if i < 0 {
			return nil, store.ErrNotFound
		}
		return slices.Delete(slices.Clone(secrets), i, i+1), nil
	})
}

func indexOfSecret(secrets []policy.Secret, id string) int {
	return slices.IndexFunc(secrets, func(s policy.Secret) bool { return s.ID == id })
}

// changeSecrets changes an owner's secrets.
func (d *Dispatcher) changeSecrets(ctx context.Context, owner store.SecretOwner, change func([]policy.Secret) ([]policy.Secret, error)) error {
	if owner.Lane != "" {
		_, err := d.ChangeLane(ctx, job.Queue(owner), func(l *policy.Lane) (err error) {
			l.Secrets, err = change(l.Secrets)
			return err
		})
		return err
	}
	_, err := d.ChangeTopic(ctx, owner.Namespace, owner.Topic, func(t *policy.Topic) (err error) {
		t.Secrets, err = change(t.Secrets)
		return err
	})
	return err
}

// PublicKeys are those of an owner's secrets that have one, the newest first.
func (d *Dispatcher) PublicKeys(ctx context.Context, owner store.SecretOwner) ([]store.PublicKey, error) {
	secrets, err := d.Secrets(ctx, owner)
	if err != nil {
		return nil, err
	}
	var keys []store.PublicKey
	for _, s := range secrets {
		secret, err := d.open(secretScope(owner), s)
		if err != nil {
			return nil, &store.UnavailableError{Reason: "a secret cannot be opened by this process", Err: err}
		}
		if secret.Asymmetric() {
			keys = append(keys, store.PublicKey{ID: s.ID, CreatedAt: s.CreatedAt, Key: secret.PublicKey()})
		}
	}
	return keys, nil
}

// open reads one secret.
func (d *Dispatcher) open(owner secretScope, s policy.Secret) (sign.Secret, error) {
	text, err := d.opts.Seal.Open(string(s.Value), owner.secretAAD(s.ID))
	if err != nil {
		return sign.Secret{}, fmt.Errorf("open the secret %s of %s: %w", s.ID, owner, err)
	}
	secret, err := sign.ParseSecret(text)
	if err != nil {
		return sign.Secret{}, fmt.Errorf("read the secret %s of %s: %w", s.ID, owner, err)
	}
	return secret, nil
}

// signer makes a signer of an owner's secrets; nil when there are none.
func (d *Dispatcher) signer(owner secretScope, secrets []policy.Secret) (job.Signer, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	opened := make([]sign.Secret, len(secrets))
	for i, s := range secrets {
		var err error
		if opened[i], err = d.open(owner, s); err != nil {
			return nil, err
		}
	}
	signer, err := sign.NewSigner(opened...)
	if err != nil {
		return nil, fmt.Errorf("make a signer for %s: %w", owner, err)
	}
	return signer, nil
}
