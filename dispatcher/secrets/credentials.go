package secrets

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/ringback/ringback/dispatcher/seal"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

// clientKey names a client certificate's key in its AAD.
const clientKey = "client_cert"

// SealTopic seals the secrets of a topic's policy but those that sign, which are sealed already. was is the policy that
// it replaces. It returns a *job.InvalidError if a client certificate does not fit its key, else ErrCannotSeal.
func (s *Sealer) SealTopic(t *store.Topic, was policy.Topic) error {
	if err := s.sealCertificate(t, was); err != nil {
		return err
	}
	p := &t.Policy
	for i, header := range headersOf(*p) {
		if s.NeedsSeal(header) && s.CannotSealHeaders(headersOf(was)[i]) {
			return ErrCannotSeal
		}
	}
	p.Headers = s.SealHeaders(p.Headers, job.Origin(p.URL))
	s.SealCallbacks(&p.OnDelivered, &p.OnDead)
	if p.OnBacklog != nil && s.NeedsSeal(p.OnBacklog.Headers) {
		stored := *p.OnBacklog
		stored.Headers = s.SealHeaders(stored.Headers, job.Origin(stored.URL))
		p.OnBacklog = &stored
	}
	return nil
}

// headersOf returns the headers of a topic and of its three callbacks; nil where there are none.
func headersOf(t policy.Topic) []map[string][]string {
	all := []map[string][]string{t.Headers, nil, nil, nil}
	if t.OnDelivered != nil {
		all[1] = t.OnDelivered.Headers
	}
	if t.OnDead != nil {
		all[2] = t.OnDead.Headers
	}
	if t.OnBacklog != nil {
		all[3] = t.OnBacklog.Headers
	}
	return all
}

// sealCertificate seals the key of a changed client certificate. The key is in plain text or in its stored form, and
// must fit the chain. A key that this process cannot open is not checked. If the previous key was sealed, a process
// that cannot seal rejects one in plain text.
func (s *Sealer) sealCertificate(t *store.Topic, was policy.Topic) error {
	c := t.Policy.ClientCert
	if c == nil || was.ClientCert != nil && *c == *was.ClientCert {
		return nil
	}
	place := aad(job.Queue{Namespace: t.Namespace, Topic: t.Name}, clientKey)
	text, err := s.box.Open(string(c.Key), place)
	stored := err == nil
	switch {
	case errors.Is(err, seal.ErrNoKey):
		return nil
	case !stored:
		text = string(c.Key)
	}
	if _, err := tls.X509KeyPair([]byte(c.Chain), []byte(text)); err != nil {
		return &job.InvalidError{Errors: []job.FieldError{{
			Field:  "/client_cert",
			Detail: "must be a certificate and its key, both in PEM: " + strings.TrimPrefix(err.Error(), "tls: "),
		}}}
	}
	if stored && s.box.Current(string(c.Key)) {
		return nil
	}
	if was.ClientCert != nil && s.CannotSeal([]policy.Secret{{Value: was.ClientCert.Key}}) {
		return ErrCannotSeal
	}
	key := s.box.Seal(text, place)
	t.Policy.ClientCert = &policy.ClientCert{Chain: c.Chain, Key: policy.Sealed(key)}
	return nil
}

// Credentials are a topic's signer and client certificate, with their secrets opened.
type Credentials struct {
	job.Credentials

	Err error // why some cannot be opened
}

// Credentials opens a topic's secrets and certificate; nil: it has none. It logs failures.
func (s *Sealer) Credentials(t store.Topic) *Credentials {
	if len(t.Policy.Secrets) == 0 && t.Policy.ClientCert == nil {
		return nil
	}
	c := &Credentials{}
	owner := job.Queue{Namespace: t.Namespace, Topic: t.Name}
	c.Signer, c.Err = s.Signer(owner, t.Policy.Secrets)
	if cert := t.Policy.ClientCert; cert != nil {
		var err error
		c.Certificate, err = s.certificate(owner, cert)
		c.Err = errors.Join(c.Err, err)
	}
	if c.Err != nil {
		s.log.Error("cannot sign: secret not readable; deliveries of this topic are held", "topic", t.Name, "err",
			c.Err)
	}
	return c
}

func (s *Sealer) certificate(owner job.Queue, cert *policy.ClientCert) (*tls.Certificate, error) {
	key, err := s.box.Open(string(cert.Key), aad(owner, clientKey))
	if err != nil {
		return nil, fmt.Errorf("open the key of the client certificate of %s: %w", owner.Topic, err)
	}
	pair, err := tls.X509KeyPair([]byte(cert.Chain), []byte(key))
	if err != nil {
		return nil, fmt.Errorf("read the client certificate of %s: %w", owner.Topic, err)
	}
	return &pair, nil
}

// LaneSigner returns the signer of a lane with secrets. It logs failures.
func (s *Sealer) LaneSigner(lane store.Lane) (job.Signer, error) {
	signer, err := s.Signer(lane.Queue, lane.Settings.Secrets)
	if err != nil {
		s.log.Error("cannot sign: secret not readable; deliveries of this lane are held", "topic", lane.Queue.Topic,
			"lane", lane.Queue.Lane, "err", err)
	}
	return signer, err
}

// Signer returns a signer of an owner's secrets; nil if there are none.
func (s *Sealer) Signer(owner job.Queue, stored []policy.Secret) (job.Signer, error) {
	if len(stored) == 0 {
		return nil, nil
	}
	opened := make([]sign.Secret, len(stored))
	for i, one := range stored {
		var err error
		if opened[i], err = s.OpenSecret(owner, one); err != nil {
			return nil, err
		}
	}
	signer, err := sign.NewSigner(opened...)
	if err != nil {
		return nil, fmt.Errorf("make a signer for %s: %w", nameOf(owner), err)
	}
	return signer, nil
}
