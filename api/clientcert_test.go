package api

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// newCertificate returns a certificate and its key in PEM.
func newCertificate(t testing.TB) (chain, key string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	cert, err := x509.CreateCertificate(nil, template, template, public, private)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// jsonString returns a text as a JSON string.
func jsonString(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

func TestClientCert_IsSetKeptAndRemovedAndItsKeyNeverShown(t *testing.T) {
	chain, key := newCertificate(t)
	stored := &policy.ClientCert{Chain: "stored chain", Key: "x1:sealed"}
	for _, c := range []struct {
		method, body string
		want         *policy.ClientCert
	}{
		{"PUT", `{}`, stored},
		{"PATCH", `{}`, stored},
		{"PUT", `{"client_cert": null}`, nil},
		{"PATCH", `{"client_cert": null}`, nil},
		{"PUT", `{"client_cert": {"chain": ` + jsonString(chain) + `, "key": ` + jsonString("Bag Attributes\n"+key) +
			`}}`, &policy.ClientCert{Chain: chain, Key: policy.Sealed(key)}},
		{"PUT", `{"client_cert": {"chain": ` + jsonString(chain) +
			`, "key": "[redacted]"}}`, &policy.ClientCert{Chain: chain, Key: stored.Key}},
		{"PUT", `{"client_cert": {"chain": ` + jsonString(chain) +
			`}}`, &policy.ClientCert{Chain: chain, Key: stored.Key}},
		{"PATCH", `{"client_cert": {"key": ` + jsonString(key) +
			`}}`, &policy.ClientCert{Chain: stored.Chain, Key: policy.Sealed(key)}},
	} {
		f := newFake()
		f.topics["a"] = store.Topic{Name: "a", Revision: 3, Policy: policy.Topic{ClientCert: stored}}
		w := call(t, handlerOf(f), c.method, "/v1/topics/a", c.body)
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		got := f.topics["a"].Policy.ClientCert
		require.Equal(t, c.want == nil, got == nil, c.body)
		require.Equal(t, &policy.ClientCert{Chain: "stored chain", Key: "x1:sealed"}, stored,
			"what was stored is not written to")
		require.NotContains(t, w.Body.String(), "x1:sealed")
		require.NotContains(t, w.Body.String(), "PRIVATE KEY")
		if c.want == nil {
			require.Nil(t, decodeResponse(t, w)["client_cert"])
			continue
		}
		require.Equal(t, c.want.Chain, got.Chain)
		require.Equal(t, string(c.want.Key), string(got.Key))
		require.Equal(t, map[string]any{"chain": got.Chain, "key": "[redacted]"}, decodeResponse(t, w)["client_cert"])
	}
}

func TestClientCert_RefusesInvalidOnesWithoutRepeatingThem(t *testing.T) {
	chain, key := newCertificate(t)
	encrypted := string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("hunter2")}))
	csr := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("hunter2")}))
	for _, c := range []struct {
		chain, key string
		fields     []string
	}{
		{chain + key, key, []string{"/client_cert/chain"}},
		{key, key, []string{"/client_cert/chain"}},
		{chain + "\ufeff" + chain, key, []string{"/client_cert/chain"}},
		{"x\n" + strings.TrimSuffix(key, "\n"), key, []string{"/client_cert/chain"}},
		{"hunter2", "hunter2", []string{"/client_cert/chain", "/client_cert/key"}},
		{chain, "plain:hunter2", []string{"/client_cert/key"}},
		{chain, "x1:hunter2", []string{"/client_cert/key"}},
		{chain, "-----BEGIN hunter2", []string{"/client_cert/key"}},
		{chain, encrypted, []string{"/client_cert/key"}},
		{chain, chain, []string{"/client_cert/key"}},
		{chain, "", []string{"/client_cert/key"}},
		{strings.Repeat(chain, 400), key +
			strings.Repeat("\n", request.MaxKeyBytes), []string{"/client_cert/chain", "/client_cert/key"}},
		{chain, "[redacted]", []string{"/client_cert/key"}},
		{chain + csr, key, []string{"/client_cert/chain"}},
		{chain + "-----BEGIN PRIVATE KEY-----\nhunter2 cut off", key, []string{"/client_cert/chain"}},
	} {
		f := newFake()
		w := call(t, handlerOf(f), http.MethodPut, "/v1/topics/a",
			`{"client_cert": {"chain": `+jsonString(c.chain)+`, "key": `+jsonString(c.key)+`}}`)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code)
		require.ElementsMatch(t, c.fields, problemIn(t, w).fields(), w.Body.String())
		require.NotContains(t, w.Body.String(), "hunter2")
		f.requireUnchanged(t)
	}
}
