package secrets

import (
	"slices"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// IsTopicStale reports whether a secret of a topic is not sealed under the current key.
func (s *Sealer) IsTopicStale(p policy.Topic) bool {
	return s.hasStaleSecret(p.Secrets) || p.ClientCert != nil && !s.box.Current(string(p.ClientCert.Key)) ||
		slices.ContainsFunc(headersOf(p), s.hasStaleHeader)
}

// ResealTopic seals the secrets of a topic under the current key, as far as they can be opened, and reports whether one
// of them was not. Headers in plain text are left to SealTopic.
func (s *Sealer) ResealTopic(owner job.Queue, p *policy.Topic) (changed bool) {
	p.Secrets, changed = s.resealSecrets(owner, p.Secrets)
	if p.ClientCert != nil {
		c := *p.ClientCert
		c.Key = s.resealValue(c.Key, aad(owner, clientKey))
		changed = changed || c != *p.ClientCert
		p.ClientCert = &c
	}
	return s.resealTopicHeaders(p, owner) || changed
}

// resealTopicHeaders seals the headers of a policy under the current key, and reports whether one of them was not.
// Those in plain text are left to SealTopic.
func (s *Sealer) resealTopicHeaders(p *policy.Topic, owner job.Queue) bool {
	changed := slices.ContainsFunc(headersOf(*p), s.NeedsSeal)
	of := func(header map[string][]string) (map[string][]string, bool) {
		anew, some := s.resealHeaders(header, owner)
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

// IsLaneStale reports whether a secret of a lane is not sealed under the current key.
func (s *Sealer) IsLaneStale(l policy.Lane) bool {
	return s.hasStaleSecret(l.Secrets) || s.hasStaleHeader(l.Headers)
}

// ResealLane seals the secrets of a lane under the current key, as far as they can be opened, and reports whether one
// of them was not. Headers in plain text are left to the writer of the settings.
func (s *Sealer) ResealLane(q job.Queue, l *policy.Lane) bool {
	stored, changed := s.resealSecrets(q, l.Secrets)
	headers, some := s.resealHeaders(l.Headers, q)
	l.Secrets, l.Headers = stored, headers
	return changed || some || s.NeedsSeal(headers)
}

func (s *Sealer) resealSecrets(owner job.Queue, stored []policy.Secret) (anew []policy.Secret, changed bool) {
	anew = slices.Clone(stored)
	for i, one := range stored {
		anew[i].Value = s.resealValue(one.Value, secretAAD(owner, one.ID))
		changed = changed || anew[i].Value != one.Value
	}
	return anew, changed
}

// resealValue returns a value sealed under the current key; one that cannot be opened is logged and returned unchanged.
func (s *Sealer) resealValue(value policy.Sealed, place string) policy.Sealed {
	if s.box.Current(string(value)) {
		return value
	}
	text, err := s.box.Open(string(value), place)
	if err != nil {
		s.log.Error("secret not resealed under the current key", "place", place, "err", err)
		return value
	}
	return policy.Sealed(s.box.Seal(text, place))
}
