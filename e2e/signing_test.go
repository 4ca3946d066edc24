package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// secretView is a secret in the API's form, with its value only when it was generated.
type secretView struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	Secret    string    `json:"secret"`
	PublicKey string    `json:"public_key"`
}

// addSecret adds a secret to a topic or a lane and returns it.
func addSecret(t testing.TB, p *process, of string, body obj) secretView {
	t.Helper()
	return call[secretView](t, p, http.MethodPost, of+"/secrets", body, http.StatusCreated)
}

// headersOf returns the headers that a library verifies.
func headersOf(a arrival) map[string]string {
	headers := make(map[string]string)
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		headers[name] = a.header.Get(name)
	}
	return headers
}

// Independent libraries verify the requests of the binary, also during a rotation, and reject them when a byte, the
// time or the secret differs.
func TestSigning_LibrariesVerifyDeliveries(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		p, r := start(t, store), newReceiver(t)
		const topic = "/v1/topics/signed"
		call[obj](t, p, http.MethodPut, topic, obj{"ladder": []string{"1s"}}, http.StatusOK)
		job := func(lane string) []arrival {
			j := obj{"topic": "signed", "url": r.URL + "/fail/1", "body": obj{"order": 4711, "name": "Zoë"}}
			if lane != "" {
				j["lane"] = lane
			}
			return r.arrives(t, register(t, p, j).ID, 2)
		}
		old := addSecret(t, p, topic, obj{}).Secret
		first := job("")
		require.Equal(t, first[0].header.Get("webhook-id"), first[1].header.Get("webhook-id"))
		require.NotEqual(t, first[0].header.Get("webhook-timestamp"), first[1].header.Get("webhook-timestamp"),
			"each attempt has its own time")
		require.NotEqual(t, first[0].header.Get("webhook-signature"), first[1].header.Get("webhook-signature"))

		rotated := addSecret(t, p, topic, obj{}).Secret
		asymmetric := addSecret(t, p, topic, obj{"kind": "ed25519"})
		require.NotEmpty(t, asymmetric.PublicKey)
		both := job("")[0]
		require.Len(t, strings.Fields(both.header.Get("webhook-signature")), 3)

		lane := topic + "/lanes/customer-7"
		call[obj](t, p, http.MethodPut, lane, obj{}, http.StatusOK)
		own := addSecret(t, p, lane, obj{}).Secret
		customers := job("customer-7")[0]

		var cases []interopCase
		for _, library := range libraries {
			add := func(name, secret string, a arrival, want string, change func(*interopCase)) {
				c := interopCase{
					Name: name, Library: library, Secret: secret, Headers: headersOf(a),
					Body: []byte(a.body), Want: want,
				}
				if change != nil {
					change(&c)
				}
				cases = append(cases, c)
			}
			add("first attempt", old, first[0], "ok", nil)
			add("second attempt", old, first[1], "ok", nil)
			add("in a rotation, the old one", old, both, "ok", nil)
			add("in a rotation, the new one", rotated, both, "ok", nil)
			add("the lane's own", own, customers, "ok", nil)
			add("the topic's on that lane", rotated, customers, "refused", nil)
			add("another lane's", own, both, "refused", nil)
			add("the secret that came later", rotated, first[0], "refused", nil)
			add("a changed byte", old, first[0], "refused", func(c *interopCase) {
				c.Body = []byte(strings.Replace(first[0].body, "4711", "4712", 1))
			})
			add("ten minutes later", old, first[0], "refused",
				func(c *interopCase) { c.Now = first[0].began.Unix() + 600 })
			add("the second attempt's time", old, first[0], "refused", func(c *interopCase) {
				c.Headers["webhook-timestamp"] = first[1].header.Get("webhook-timestamp")
			})
		}
		requireInterop(t, cases)
	})
}

// With a key, neither the store nor the log contains a secret, and signing continues after a new key was put first.
func TestSecrets_AreEncryptedAtRest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := "sqlite:" + filepath.Join(dir, "ringback.db")
	keys := filepath.Join(dir, "keys")
	const first, second = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8="
	require.NoError(t, os.WriteFile(keys, []byte(first), 0o600))
	r := newReceiver(t)
	const topic = "/v1/topics/sealed"

	p := start(t, store, "--secret-key-file="+keys)
	secret := addSecret(t, p, topic, obj{}).Secret
	call[obj](t, p, http.MethodPut, topic+"/lanes/seven", obj{"url": r.URL + "/ok"}, http.StatusOK)
	own := addSecret(t, p, topic+"/lanes/seven", obj{}).Secret
	verified := func(lane, secret string) {
		t.Helper()
		a := r.arrives(t, register(t, p, obj{"topic": "sealed", "lane": lane, "url": r.URL +
			"/ok", "body": obj{"n": 1}}).ID, 1)[0]
		want := hmacHeaders(secret, a.id, unix(t, a.header.Get("webhook-timestamp")), a.body)
		require.Equal(t, want, headersOf(a))
	}
	verified("one", secret)
	verified("seven", own)
	restart := func(text string) {
		code, _ := p.terminate()
		require.Zero(t, code)
		requireNowhere(t, dir, p, secret, own)
		require.NoError(t, os.WriteFile(keys, []byte(text), 0o600))
		p = start(t, store, "--secret-key-file="+keys)
	}
	restart(second + "," + first)
	verified("one", secret)
	verified("seven", own)
	restart(second + "," + first) // whatever the first start sealed anew is on the disk now
	restart(second)
	verified("one", secret)
	verified("seven", own)

	// Without its key nothing is sent unsigned: the job waits.
	restart(first)
	id := register(t, p, obj{"topic": "sealed", "lane": "one", "url": r.URL + "/ok"}).ID
	eventually(t, func() bool { return strings.Contains(p.log.text(), "cannot sign: secret not readable") })
	require.Empty(t, r.of(id))
	restart(second)
	r.arrives(t, id, 1)
	require.Equal(t, 1, await(t, p, id, "delivered").AttemptsMade)
}

// requireNowhere fails when a file of dir, or a process's log, contains a secret.
func requireNowhere(t *testing.T, dir string, p *process, secrets ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, secret := range secrets {
		bare := strings.TrimPrefix(secret, "whsec_")
		require.NotContains(t, p.log.text(), bare)
		for _, e := range entries {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			require.NoError(t, err)
			require.NotContains(t, string(text), bare, e.Name())
		}
	}
}
