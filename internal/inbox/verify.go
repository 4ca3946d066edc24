package inbox

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/ringback/ringback/sign"
)

// keysFile is the path of a file with secrets and public keys, one a line. It is read for each signed request, since secrets are made
// while the inbox runs.
type keysFile string

// verifier returns a verifier of the keys in the file; nil: there are none.
func (f keysFile) verifier() (*sign.Verifier, error) {
	if f == "" {
		return nil, nil //nolint:nilnil // no file has no keys
	}
	text, err := os.ReadFile(string(f))
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	keys := strings.Fields(string(text))
	if len(keys) == 0 {
		return nil, nil //nolint:nilnil // an empty file has no keys
	}
	v, err := sign.NewVerifier(keys...)
	if err != nil {
		return nil, fmt.Errorf("read the keys in %s: %w", f, err)
	}
	return v, nil
}

// verdict says whether the signature of a request verifies; empty: it is not signed, and there are no keys.
func (f keysFile) verdict(header http.Header, body []byte) string {
	signed := header.Get("Webhook-Signature") != ""
	v, err := f.verifier()
	switch {
	case v == nil && err == nil && !signed:
		return ""
	case !signed:
		return "  not signed"
	case err != nil:
		return "  signature not verified: " + err.Error()
	case v == nil:
		return "  signed"
	case len(body) > maxInboxBody:
		return "  signature not verified: the body is too large"
	}
	if err := v.Verify(header, body, time.Now()); err != nil {
		return "  signature WRONG: " + err.Error()
	}
	return "  signature valid"
}
