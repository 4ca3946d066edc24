package inbox

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/internal/utf8text"
	"github.com/ringback/ringback/sign"
)

// maxAddedKeys bounds the keys of AddKey.
const maxAddedKeys = 100

// Verdict says what came of verifying a signature.
type Verdict string

// The verdicts.
const (
	Unsigned Verdict = "unsigned"
	// Verified: one of the keys has signed the request.
	Verified Verdict = "verified"
	// Wrong: none of the keys has.
	Wrong Verdict = "wrong"
	// Unchecked: the request is signed, and there are no keys.
	Unchecked Verdict = "unchecked"
	// Unreadable: the request is signed, and it or the keys could not be read.
	Unreadable Verdict = "unreadable"
)

// Signature is what the inbox knows about the signature of a request.
type Signature struct {
	Verdict Verdict
	// Key names the key of Verified: the id of a secret, or a public key.
	Key string
	// Detail is why the signature is Wrong or Unreadable.
	Detail string
}

// verdictTexts are the verdicts in a line of output, before their details.
var verdictTexts = map[Verdict]string{
	Verified: "  signature valid", Wrong: "  signature WRONG: ", Unreadable: "  signature not verified: ",
	Unchecked: "  signed",
}

// text is the verdict in a line of output; empty: there is nothing to tell of a request that needs no signature.
func (s Signature) text(keys bool) string {
	if s.Verdict == Unsigned && keys {
		return "  not signed"
	}
	return verdictTexts[s.Verdict] + s.Detail
}

// key verifies signatures with one key.
type key struct {
	name     string
	verifier *sign.Verifier
}

// newKey parses a key: whsec_…, whsk_… or whpk_….
func newKey(text string) (key, error) {
	v, err := sign.NewVerifier(text)
	if err != nil {
		return key{}, err
	}
	if secret, err := sign.ParseSecret(text); err == nil {
		return key{secret.ID(), v}, nil
	}
	return key{text, v}, nil // it is public
}

// keysFile is the path of a file with secrets and public keys, one a line. It is read for each signed request, since
// secrets are made while the inbox runs.
type keysFile string

// read returns the keys in the file.
func (f keysFile) read() ([]key, error) {
	if f == "" {
		return nil, nil
	}
	text, err := os.ReadFile(string(f))
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	if text, err = utf8text.Trim(text); err != nil {
		return nil, fmt.Errorf("read the keys: %s %w", f, err)
	}
	texts := strings.Fields(string(text))
	if len(texts) == 0 {
		return nil, nil
	}
	if _, err := sign.NewVerifier(texts...); err != nil { // it names the line
		return nil, fmt.Errorf("read the keys in %s: %w", f, err)
	}
	keys := make([]key, len(texts))
	for i, text := range texts {
		if keys[i], err = newKey(text); err != nil {
			return nil, fmt.Errorf("read the keys in %s: %w", f, err)
		}
	}
	return keys, nil
}

// AddKey makes the inbox verify signatures with a key, too, until it ends: whsec_…, whsk_… or whpk_…. The error does
// not contain it.
func (in *Inbox) AddKey(text string) error {
	k, err := newKey(text)
	if err != nil {
		return fmt.Errorf("add a key to the inbox: %w", err)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if slices.ContainsFunc(in.added, func(other key) bool { return other.name == k.name }) {
		return nil
	}
	if len(in.added) >= maxAddedKeys {
		return fmt.Errorf("add a key to the inbox: it has %d already: restart it", maxAddedKeys)
	}
	in.added = append(in.added, k)
	return nil
}

// verify verifies the signature of a request. keys reports whether there are keys, or there should be.
func (in *Inbox) verify(header http.Header, body []byte) (s Signature, keys bool) {
	all, err := in.keys.read()
	in.mu.Lock()
	all = append(all, in.added...)
	in.mu.Unlock()
	keys = len(all) > 0 || err != nil
	switch {
	case header.Get("Webhook-Signature") == "":
		return Signature{Verdict: Unsigned}, keys
	case len(all) > 0 && len(body) > maxInboxBody:
		return Signature{Verdict: Unreadable, Detail: "the body is too large"}, keys
	}
	why, now := errors.New("no key"), time.Now()
	for _, k := range all {
		if why = k.verifier.Verify(header, body, now); why == nil {
			return Signature{Verdict: Verified, Key: k.name}, keys
		}
	}
	switch {
	case err != nil:
		return Signature{Verdict: Unreadable, Detail: err.Error()}, keys
	case len(all) == 0:
		return Signature{Verdict: Unchecked}, keys
	}
	return Signature{Verdict: Wrong, Detail: why.Error()}, keys
}
