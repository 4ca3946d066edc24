package dispatcher

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/seal"
	"github.com/ringback/ringback/store"
)

// clientKey names a client certificate's key in its AAD.
const clientKey = "client_cert"

// sealTopic seals what a topic's policy holds of secrets but those that sign, which come sealed.
func (d *Dispatcher) sealTopic(t *store.Topic, was policy.Topic) error {
	if err := d.sealCertificate(t, was); err != nil {
		return err
	}
	p := &t.Policy
	for i, header := range headersOf(*p) {
		if hasPlainSecret(header) && d.cannotSealHeaders(headersOf(was)[i]) {
			return errCannotSeal
		}
	}
	p.Headers = d.sealHeaders(p.Headers, job.Origin(p.URL))
	d.sealCallbacks(&p.OnDelivered, &p.OnDead)
	if p.OnBacklog != nil && hasPlainSecret(p.OnBacklog.Headers) {
		stored := *p.OnBacklog
		stored.Headers = d.sealHeaders(stored.Headers, job.Origin(stored.URL))
		p.OnBacklog = &stored
	}
	return nil
}

// headersOf are all headers of a topic's policy, always as many; nil where it has none.
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

// sealCertificate seals the key of a client certificate that is not as it was: it came in the open, or as it was stored,
// and must fit its chain. What is sealed under a key that is not at hand is left alone. Where the one before was sealed, a
// process without a key to seal with refuses another in the open.
func (d *Dispatcher) sealCertificate(t *store.Topic, was policy.Topic) error {
	c := t.Policy.ClientCert
	if c == nil || was.ClientCert != nil && *c == *was.ClientCert {
		return nil
	}
	place := secretScope{Namespace: t.Namespace, Topic: t.Name}.aad(clientKey)
	text, err := d.opts.Seal.Open(string(c.Key), place)
	stored := err == nil
	switch {
	case errors.Is(err, seal.ErrNoKey):
		return nil
	case !stored:
		text = string(c.Key)
	}
	if _, err := tls.X509KeyPair([]byte(c.Chain), []byte(text)); err != nil {
		return invalid("/client_cert", "must be a certificate and its key, both in PEM: "+strings.TrimPrefix(err.Error(), "tls: "))
	}
	if stored && d.opts.Seal.Current(string(c.Key)) {
		return nil
	}
	if was.ClientCert != nil && d.cannotSeal([]policy.Secret{{Value: was.ClientCert.Key}}) {
		return errCannotSeal
	}
	key := d.opts.Seal.Seal(text, place)
	t.Policy.ClientCert = &policy.ClientCert{Chain: c.Chain, Key: policy.Sealed(key)}
	return nil
}

// credentials are a topic's signer and client certificate, with their secrets opened.
type credentials struct {
	job.Credentials

	revision int64
	err      error
}

// credentials opens a topic's secrets and certificate.
func (d *Dispatcher) credentials(t store.Topic) *credentials {
	if len(t.Policy.Secrets) == 0 && t.Policy.ClientCert == nil {
		return nil
	}
	c := &credentials{revision: t.Revision}
	owner := secretScope{Namespace: t.Namespace, Topic: t.Name}
	c.Signer, c.err = d.signer(owner, t.Policy.Secrets)
	if cert := t.Policy.ClientCert; cert != nil {
		var err error
		c.Certificate, err = d.certificate(owner, cert)
		c.err = errors.Join(c.err, err)
	}
	if c.err != nil {
		d.log.Error("cannot sign: secret not readable; deliveries of this topic are held", "topic", t.Name, "err", c.err)
	}
	return c
}

func (d *Dispatcher) certificate(owner secretScope, cert *policy.ClientCert) (*tls.Certificate, error) {
	key, err := d.opts.Seal.Open(string(cert.Key), owner.aad(clientKey))
	if err != nil {
		return nil, fmt.Errorf("open the key of the client certificate of %s: %w", owner.Topic, err)
	}
	pair, err := tls.X509KeyPair([]byte(cert.Chain), []byte(key))
	if err != nil {
		return nil, fmt.Errorf("read the client certificate of %s: %w", owner.Topic, err)
	}
	return &pair, nil
}

// laneSigner returns the signer of a lane with secrets.
func (d *Dispatcher) laneSigner(lane store.Lane) (job.Signer, error) {
	return d.signer(secretScope(lane.Queue), lane.Settings.Secrets)
}
