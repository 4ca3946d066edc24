package transfer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/ringback/ringback/dispatcher/seal"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// removeFromValue replaces the secrets in the value of a document or in the body of an internal job: sealed headers,
// and the members of signing secrets and client certificates.
func removeFromValue(text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("remove secrets: %w", err)
	}
	return json.Marshal(removeFrom(value))
}

func removeFrom(value any) any {
	switch v := value.(type) {
	case string:
		if _, sealed := job.Sealed([]string{v}); sealed {
			return job.SealedValues(seal.Removed)[0]
		}
	case []any:
		for i := range v {
			v[i] = removeFrom(v[i])
		}
	case map[string]any:
		for name, member := range v {
			v[name] = removeFrom(member)
			switch members, _ := v[name].(map[string]any); {
			case name == "client_cert" && members != nil:
				members["key"] = seal.Removed
			case name == "secrets":
				removeSigning(v[name])
			}
		}
	}
	return value
}

// removeSigning replaces the values of signing secrets.
func removeSigning(value any) {
	list, _ := value.([]any)
	for _, one := range list {
		if secret, ok := one.(map[string]any); ok {
			secret["value"] = seal.Removed
		}
	}
}

// removeSecrets replaces the secrets of a job.
func removeSecrets(r *store.Record) error {
	r.Header = removeHeaders(r.Header)
	for _, c := range []**policy.Callback{&r.OnDelivered, &r.OnDead} {
		if *c != nil {
			changed := **c
			changed.Headers = removeHeaders(changed.Headers)
			*c = &changed
		}
	}
	if store.IsInternal(r.Topic) && bytes.HasPrefix(r.Body, []byte("{")) {
		body, err := removeFromValue(r.Body)
		if err != nil {
			return err
		}
		r.Body = body
	}
	return nil
}

func removeHeaders(header map[string][]string) map[string][]string {
	removed := maps.Clone(header)
	for name, values := range header {
		if _, sealed := job.Sealed(values); sealed || job.SecretHeader(name) {
			removed[name] = job.SealedValues(seal.Removed)
		}
	}
	return removed
}

// isToken reports whether a document has to do with tokens, which an export without secrets leaves out.
func isToken(kind string) bool { return strings.HasPrefix(kind, "token") }
