package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// resealAll makes one walk at the start, while the store can be reached: a walk that is cut short is made at the next
// start.
func (d *Dispatcher) resealAll(ctx context.Context) {
	if !d.opts.Seal.Encrypts() {
		return
	}
	began := time.Now()
	count, err := d.reseal(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		d.log.Warn("resealing secrets under the current key failed; the next start retries", "sealed", count, "err", err)
	case err == nil:
		d.log.Info("resealed secrets under the current key", "sealed", count, "took", time.Since(began))
	}
}

// reseal seals under the current key what is sealed under an older one, or not at all, so that an older key can be
// dropped: every topic's, and every lane's. What cannot be opened stays as it is and is named.
// count is how many topics and lanes were written.
func (d *Dispatcher) reseal(ctx context.Context) (count int, err error) {
	set, err := d.policies.Snapshot(ctx, current)
	if err != nil {
		return 0, err
	}
	var failed error
	for name, t := range set.topics {
		for _, walk := range []func() (int, error){
			func() (int, error) { return d.resealTopic(ctx, name, t.stored.Policy) },
			func() (int, error) { return d.resealLanes(ctx, name) },
		} {
			n, err := walk()
			if count += n; err == nil {
				continue
			}
			if failed = err; errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
				return count, failed
			}
		}
	}
	return count, failed // one of them: what goes wrong with one stops no other
}

func (d *Dispatcher) resealTopic(ctx context.Context, name topicName, p policy.Topic) (count int, err error) {
	owner := secretScope{Namespace: name.namespace, Topic: name.name}
	if !d.hasStaleSecret(p.Secrets) && (p.ClientCert == nil || d.opts.Seal.Current(string(p.ClientCert.Key))) &&
		!slices.ContainsFunc(headersOf(p), d.hasStaleHeader) {
		return 0, nil
	}
	_, err = d.ChangeTopic(ctx, name.namespace, name.name, func(p *policy.Topic) error {
		secrets, changed := d.resealSecrets(owner, p.Secrets)
		p.Secrets = secrets
		if p.ClientCert != nil {
			c := *p.ClientCert
			c.Key = d.resealValue(c.Key, owner.aad(clientKey))
			changed = changed || c != *p.ClientCert
			p.ClientCert = &c
		}
		changed = d.resealTopicHeaders(p, owner) || changed
		if count = 0; !changed {
			return errNoChange
		}
		count = 1
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("reseal the secrets of %s: %w", owner, err)
	}
	return count, nil
}

// resealTopicHeaders seals the headers of a policy under the current key, and reports whether one of them was not. Those
// that are not sealed at all are sealed when the policy is put.
func (d *Dispatcher) resealTopicHeaders(p *policy.Topic, owner secretScope) bool {
	changed := slices.ContainsFunc(headersOf(*p), hasPlainSecret)
	of := func(header map[string][]string) (map[string][]string, bool) {
		anew, some := d.resealHeaders(header, owner)
		changed = changed || some
		return anew, some
	}
	p.Headers, _ = of(p.Headers)
	for _, c := range []**policy.Callback{&p.OnDelivered, &p.OnDead} {
		if *c == nil {
			continue
		}
		if anew, some := of((*c).Headers); some {
			stored := **c
			stored.Headers = anew
			*c = &stored
		}
	}
	if p.OnBacklog != nil {
		if anew, some := of(p.OnBacklog.Headers); some {
			stored := *p.OnBacklog
			stored.Headers = anew
			p.OnBacklog = &stored
		}
	}
	return changed
}

// resealLanes walks a topic's lanes page by page. What goes wrong with one stops no other, while the store can be reached.
func (d *Dispatcher) resealLanes(ctx context.Context, name topicName) (count int, failed error) {
	for after := ""; ; {
		lanes, err := d.store.ListLanes(ctx, name.namespace, name.name, after, store.MaxBatch)
		if err != nil {
			return count, err
		}
		for _, l := range lanes {
			after = l.Queue.Lane
			if !d.hasStaleSecret(l.Settings.Secrets) && !d.hasStaleHeader(l.Settings.Headers) {
				continue
			}
			wrote := 0
			if _, err := d.ChangeLane(ctx, l.Queue, func(s *policy.Lane) error {
				secrets, changed := d.resealSecrets(secretScope(l.Queue), s.Secrets)
				headers, some := d.resealHeaders(s.Headers, secretScope(l.Queue))
				changed = changed || some || hasPlainSecret(headers)
				s.Headers = headers
				if s.Secrets, wrote = secrets, 0; !changed {
					return errNoChange
				}
				wrote = 1
				return nil
			}); err != nil {
				failed = fmt.Errorf("reseal the secrets of %s: %w", secretScope(l.Queue), err)
				if errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
					return count, failed
				}
				continue
			}
			count += wrote
		}
		if len(lanes) < store.MaxBatch {
			return count, failed
		}
	}
}

// hasStaleSecret reports whether a secret is not sealed under the current key.
func (d *Dispatcher) hasStaleSecret(secrets []policy.Secret) bool {
	for _, s := range secrets {
		if !d.opts.Seal.Current(string(s.Value)) {
			return true
		}
	}
	return false
}

func (d *Dispatcher) resealSecrets(owner secretScope, secrets []policy.Secret) (anew []policy.Secret, changed bool) {
	anew = slices.Clone(secrets)
	for i, s := range secrets {
		anew[i].Value = d.resealValue(s.Value, owner.secretAAD(s.ID))
		changed = changed || anew[i].Value != s.Value
	}
	return anew, changed
}

// resealValue seals a text under the current key, unless it is, or cannot be opened.
func (d *Dispatcher) resealValue(value policy.Sealed, place string) policy.Sealed {
	if d.opts.Seal.Current(string(value)) {
		return value
	}
	text, err := d.opts.Seal.Open(string(value), place)
	if err != nil {
		d.log.Error("a secret could not be sealed under the current key", "place", place, "err", err)
		return value
	}
	return policy.Sealed(d.opts.Seal.Seal(text, place))
}
