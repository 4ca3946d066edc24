package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringback/ringback/dispatcher/secrets"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

// AddSecret adds a secret to its owner as the newest: a lane, or a topic if the queue has no lane. All of them sign. A
// lane's secrets replace those of its topic. The same secret again changes nothing, unless the stored one cannot be
// opened. Error: *job.InvalidError beyond policy.MaxSecrets or maxAsymmetric; *store.RevisionError when the owner's
// settings do not meet the condition.
func (d *Dispatcher) AddSecret(
	ctx context.Context, owner job.Queue, secret sign.Secret, opts store.ChangeOptions,
) (policy.Secret, error) {
	added := policy.Secret{
		ID: secret.ID(), CreatedAt: job.Millis(time.Now()), CreatedBy: opts.Updated.By,
		Value: d.sealer.SealSecret(owner, secret),
	}
	err := d.changeSecrets(ctx, owner, opts, func(stored []policy.Secret) ([]policy.Secret, error) {
		if i := indexOfSecret(stored, added.ID); i >= 0 {
			if _, err := d.sealer.OpenSecret(owner, stored[i]); err == nil {
				added = stored[i]
				return nil, errNoChange
			}
			// It was sealed under a removed key.
			added.CreatedAt, added.CreatedBy = stored[i].CreatedAt, stored[i].CreatedBy
			stored = slices.Clone(stored)
			stored[i] = added
			return stored, nil
		}
		if d.sealer.CannotSeal(stored) {
			return nil, secrets.ErrCannotSeal
		}
		if len(stored) >= policy.MaxSecrets {
			return nil, invalid("/secret",
				fmt.Sprintf("is one too many: there are %d, remove one of them first", len(stored)))
		}
		if secret.Asymmetric() && d.countAsymmetric(owner, stored) >= maxAsymmetric {
			return nil, invalid("/secret",
				fmt.Sprintf("is one ed25519 key too many: there are %d, remove one of them first", maxAsymmetric))
		}
		return append([]policy.Secret{added}, stored...), nil
	})
	return added, err
}

// maxAsymmetric bounds the ed25519 keys of an owner, enough to rotate: each attempt is signed with all of them, which
// takes many times longer than with other secrets.
const maxAsymmetric = 2

// countAsymmetric counts the ed25519 keys among secrets. Secrets that cannot be opened are not counted.
func (d *Dispatcher) countAsymmetric(owner job.Queue, stored []policy.Secret) (n int) {
	for _, s := range stored {
		if secret, err := d.sealer.OpenSecret(owner, s); err == nil && secret.Asymmetric() {
			n++
		}
	}
	return n
}

// Secrets returns an owner's secrets without their values, newest first.
func (d *Dispatcher) Secrets(ctx context.Context, owner job.Queue) ([]policy.Secret, error) {
	if owner.Lane == "" {
		topic, err := d.Topic(ctx, owner.Namespace, owner.Topic)
		return topic.Policy.Secrets, err
	}
	lane, err := d.Lane(ctx, owner)
	return lane.Settings.Secrets, err
}

// RemoveSecret removes a secret. Errors: store.ErrNotFound, *store.RevisionError.
func (d *Dispatcher) RemoveSecret(ctx context.Context, owner job.Queue, id string, opts store.ChangeOptions) error {
	return d.changeSecrets(ctx, owner, opts, func(stored []policy.Secret) ([]policy.Secret, error) {
		i := indexOfSecret(stored, id)
		if i < 0 {
			return nil, store.ErrNotFound
		}
		return slices.Delete(slices.Clone(stored), i, i+1), nil
	})
}

func indexOfSecret(secrets []policy.Secret, id string) int {
	return slices.IndexFunc(secrets, func(s policy.Secret) bool { return s.ID == id })
}

// changeSecrets changes an owner's secrets.
func (d *Dispatcher) changeSecrets(
	ctx context.Context, owner job.Queue, opts store.ChangeOptions,
	change func([]policy.Secret) ([]policy.Secret, error),
) error {
	if owner.Lane != "" {
		_, err := d.ChangeLane(ctx, owner, opts, func(l *policy.Lane) (err error) {
			l.Secrets, err = change(l.Secrets)
			return err
		})
		return err
	}
	_, err := d.ChangeTopic(ctx, owner.Namespace, owner.Topic, opts, func(t *policy.Topic) (err error) {
		t.Secrets, err = change(t.Secrets)
		return err
	})
	return err
}

// PublicKeys returns the public keys of an owner's asymmetric secrets, newest first.
func (d *Dispatcher) PublicKeys(ctx context.Context, owner job.Queue) ([]store.PublicKey, error) {
	stored, err := d.Secrets(ctx, owner)
	if err != nil {
		return nil, err
	}
	var keys []store.PublicKey
	for _, s := range stored {
		secret, err := d.sealer.OpenSecret(owner, s)
		if err != nil {
			return nil, &store.UnavailableError{Reason: "a secret cannot be opened by this process", Err: err}
		}
		if secret.Asymmetric() {
			keys = append(keys, store.PublicKey{ID: s.ID, CreatedAt: s.CreatedAt, Key: secret.PublicKey()})
		}
	}
	return keys, nil
}
