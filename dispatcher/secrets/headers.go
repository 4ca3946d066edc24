package secrets

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Headers that carry credentials are stored sealed, each with the origin to which it may be sent: that of the URL of
// its job, topic, lane or callback when it was set. The attempt opens them and sends none to another origin, however a
// URL was changed since. If there is a key, headers that may carry secrets by other names (job.HarmlessHeader) are
// sealed, too, but may be sent to any origin.

// headerAAD returns the additional data of a header. It is the same wherever the header is stored: a callback's headers
// are copied from settings into jobs.
func headerAAD(name string) string { return "headers/" + name }

// SealHeaders returns headers in their stored form. Sealed secrets stay bound to their origin. Other credentials are
// bound to origin; empty: they may be sent to any.
func (s *Sealer) SealHeaders(header map[string][]string, origin string) map[string][]string {
	if !s.NeedsSeal(header) {
		return header
	}
	stored := maps.Clone(header)
	for name, values := range header {
		if !s.mustSeal(name, values) {
			continue
		}
		secret := job.HeaderSecret{Values: values}
		if job.SecretHeader(name) {
			secret.Origin = origin
		}
		stored[name] = job.SealedValues(s.box.Seal(secret.Text(), headerAAD(name)))
	}
	return stored
}

// noOrigin is the origin of secret headers of jobs without a URL: they are sent to none, should their topic be pushed
// later.
const noOrigin = "none"

// SealJobHeaders is SealHeaders for a job. target returns the URL to whose origin credentials are bound; empty: the job
// is pulled, or delivered by a function. It is called only if there are some to bind.
func (s *Sealer) SealJobHeaders(
	header map[string][]string, target func() (string, error),
) (map[string][]string, error) {
	url := ""
	if HasPlain(header) {
		var err error
		if url, err = target(); err != nil {
			return nil, err
		}
	}
	return s.SealHeaders(header, cmp.Or(job.Origin(url), noOrigin)), nil
}

// mustSeal reports whether a header is not in its stored form.
func (s *Sealer) mustSeal(name string, values []string) bool {
	_, sealed := job.Sealed(values)
	return !sealed && (job.SecretHeader(name) || s.box.Encrypts() && !job.HarmlessHeader(name))
}

// NeedsSeal reports whether some of the headers are not in their stored form.
func (s *Sealer) NeedsSeal(header map[string][]string) bool {
	for name, values := range header {
		if s.mustSeal(name, values) {
			return true
		}
	}
	return false
}

// HasPlain reports whether headers hold credentials that are not sealed, and so not bound to an origin.
func HasPlain(header map[string][]string) bool {
	for name, values := range header {
		if _, sealed := job.Sealed(values); !sealed && job.SecretHeader(name) {
			return true
		}
	}
	return false
}

// SealCallbacks seals the headers of callbacks, in copies of them.
func (s *Sealer) SealCallbacks(all ...**policy.Callback) {
	for _, c := range all {
		if *c == nil || !s.NeedsSeal((*c).Headers) {
			continue
		}
		stored := **c
		stored.Headers = s.SealHeaders(stored.Headers, job.Origin(stored.URL))
		*c = &stored
	}
}

// hasStaleHeader reports whether headers hold a secret that is not sealed under the current key.
func (s *Sealer) hasStaleHeader(header map[string][]string) bool {
	for name, values := range header {
		if sealed, ok := job.Sealed(values); ok && !s.box.Current(sealed) || s.mustSeal(name, values) {
			return true
		}
	}
	return false
}

// CannotSealHeaders reports whether some of the headers are sealed, and this process could not seal another.
func (s *Sealer) CannotSealHeaders(header map[string][]string) bool {
	if s.box.Encrypts() {
		return false
	}
	for _, values := range header {
		if sealed, ok := job.Sealed(values); ok && !s.box.Current(sealed) {
			return true
		}
	}
	return false
}

// resealHeaders returns headers with their secrets sealed under the current key, as far as they can be opened.
func (s *Sealer) resealHeaders(header map[string][]string, owner job.Queue) (anew map[string][]string, changed bool) {
	anew = header
	for name, values := range header {
		sealed, ok := job.Sealed(values)
		if !ok || s.box.Current(sealed) {
			continue
		}
		text, err := s.box.Open(sealed, headerAAD(name))
		if err != nil {
			s.log.Error("header not resealed under the current key", "place", aad(owner, headerAAD(name)), "err", err)
			continue
		}
		if !changed {
			anew, changed = maps.Clone(header), true
		}
		anew[name] = job.SealedValues(s.box.Seal(text, headerAAD(name)))
	}
	return anew, changed
}

// OpenHeader opens a sealed header.
func (s *Sealer) OpenHeader(name, sealed string) (job.HeaderSecret, error) {
	text, err := s.box.Open(sealed, headerAAD(name))
	if err != nil {
		return job.HeaderSecret{}, fmt.Errorf("open the header %s: %w", name, err)
	}
	return job.ParseHeaderSecret(text), nil
}

// OpenUnbound returns headers whose secrets without an origin are plain, as before SealHeaders sealed them for none.
func (s *Sealer) OpenUnbound(header map[string][]string) (map[string][]string, error) {
	opened := maps.Clone(header)
	for name, values := range header {
		sealed, ok := job.Sealed(values)
		if !ok {
			continue
		}
		secret, err := s.OpenHeader(name, sealed)
		if err != nil {
			return nil, err
		}
		if secret.Origin == "" {
			opened[name] = secret.Values
		}
	}
	return opened, nil
}

// OpenForAttempt is OpenHeader for an attempt of a queue. It logs failures.
func (s *Sealer) OpenForAttempt(q job.Queue, name, sealed string) (job.HeaderSecret, error) {
	secret, err := s.OpenHeader(name, sealed)
	if err != nil {
		s.unopenedLog.Error("cannot open a secret header; deliveries of this lane are held", "topic", q.Topic,
			"lane", q.Lane, "err", err)
	}
	return secret, err
}
