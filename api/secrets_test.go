package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

// owners are the paths of owners of secrets.
var owners = []string{"/v1/topics/a", "/v1/topics/a/lanes/b"}

func TestAddSecret_TakesOrGeneratesOneAndShowsItOnce(t *testing.T) {
	for _, owner := range owners {
		for _, c := range []struct{ body, kind, prefix string }{
			{"", "hmac", "whsec_"},
			{"{}", "hmac", "whsec_"},
			{`{"kind": null, "secret": null}`, "hmac", "whsec_"},
			{`{"kind": "hmac"}`, "hmac", "whsec_"},
			{`{"kind": "ed25519"}`, "ed25519", "whsk_"},
			{`{"secret": "` + sharedSecret.Text() + `"}`, "hmac", sharedSecret.Text()},
			{`{"secret": "` + keySecret.Text() + `"}`, "ed25519", keySecret.Text()},
		} {
			f := newFake()
			f.topics["a"] = store.Topic{Name: "a"}
			h := handlerOf(f)
			w := call(t, h, http.MethodPost, owner+"/secrets", c.body)
			require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
			got := decodeResponse(t, w)
			require.Equal(t, c.kind, got["kind"])
			text, _ := got["secret"].(string)
			id, _ := got["id"].(string)
			require.True(t, strings.HasPrefix(text, c.prefix), c.body)
			require.Equal(t, f.text[id], text, "the shown secret signs")
			secret, err := sign.ParseSecret(text)
			require.NoError(t, err)
			require.Equal(t, secret.ID(), id)
			if secret.Asymmetric() {
				require.Equal(t, secret.PublicKey(), got["public_key"])
			} else {
				require.Nil(t, got["public_key"])
			}
			require.Equal(t, owner != owners[0], len(f.own) == 1, "a lane's are the lane's")

			list := call(t, h, http.MethodGet, owner+"/secrets", "")
			require.JSONEq(t, `{"items": [{"id": "`+id+`", "created_at": "2030-01-31T08:00:00.123Z", "created_by": `+
				`null}], "next_cursor": null}`, list.Body.String())
			keys := call(t, h, http.MethodGet, owner+"/keys", "").Body.String()
			require.Equal(t, secret.Asymmetric(),
				strings.Contains(keys, secret.PublicKey()) && strings.Contains(keys, id), keys)
			require.NotContains(t, keys, text)

			w = call(t, h, http.MethodDelete, owner+"/secrets/"+id, "")
			require.Equal(t, http.StatusNoContent, w.Code)
			require.JSONEq(t, `{"items": [], "next_cursor": null}`,
				call(t, h, http.MethodGet, owner+"/secrets", "").Body.String())
			require.JSONEq(t, `{"items": [], "next_cursor": null}`,
				call(t, h, http.MethodGet, owner+"/keys", "").Body.String())
			w = call(t, h, http.MethodDelete, owner+"/secrets/"+id, "")
			require.Equal(t, http.StatusNotFound, w.Code)
			require.Equal(t, "no such secret", problemIn(t, w).Detail)
		}
	}
}

func TestAddSecret_GeneratesDifferentOnes(t *testing.T) {
	f := newFake()
	for range 4 {
		for _, body := range []string{"", `{"kind": "ed25519"}`} {
			require.Equal(t, http.StatusCreated,
				call(t, handlerOf(f), http.MethodPost, "/v1/topics/a/secrets", body).Code)
		}
	}
	require.Len(t, f.text, 8)
}

func TestAddSecret_CreatesTheTopicOrLane(t *testing.T) {
	f := newFake()
	require.Equal(t, http.StatusNotFound, call(t, handlerOf(f), http.MethodGet, "/v1/topics/a/secrets", "").Code)
	require.Equal(t, http.StatusNotFound, call(t, handlerOf(f), http.MethodGet, "/v1/topics/a/keys", "").Code)
	for _, owner := range owners {
		require.Equal(t, http.StatusCreated, call(t, handlerOf(f), http.MethodPost, owner+"/secrets", "").Code)
	}
	require.Len(t, f.topics, 1)
	require.Len(t, f.own, 1)
	require.Equal(t, http.StatusOK, call(t, handlerOf(f), http.MethodGet, "/v1/topics/a/lanes/b", "").Code)
}

func TestAddSecret_RefusesInvalidOnesWithoutRepeatingThem(t *testing.T) {
	for body, fields := range map[string][]string{
		`{"secret": "hunter2"}`:                    {"/secret"},
		`{"secret": "whsec_hunter2"}`:              {"/secret"},
		`{"secret": "whsec_aHVudGVyMg=="}`:         {"/secret"},
		`{"secret": "[redacted]"}`:                 {"/secret"},
		`{"secret": ""}`:                           {"/secret"},
		`{"secret": 5, "kind": 5}`:                 {"/secret", "/kind"},
		`{"kind": "rsa", "bits": 2048}`:            {"/kind", "/bits"},
		`{"secret": "hunter2", "kind": "hmac"}`:    {"/kind"},
		`{"secret": "whpk_` + sharedBytes() + `"}`: {"/secret"},
		`[]`: {""},
		`{"secret": "` + sharedSecret.Text() + ` "}`: {"/secret"},
	} {
		for _, owner := range owners {
			f := newFake()
			w := call(t, handlerOf(f), http.MethodPost, owner+"/secrets", body)
			require.Equal(t, http.StatusUnprocessableEntity, w.Code, body)
			require.ElementsMatch(t, fields, problemIn(t, w).fields(), w.Body.String())
			for _, part := range []string{"hunter2", "aHVudGVyMg", sharedBytes()} {
				require.NotContains(t, w.Body.String(), part)
			}
			f.requireUnchanged(t)
		}
	}
	f := newFake()
	for target, status := range map[string]int{
		"POST /v1/topics/_a/secrets": 422, "POST /v1/topics/a/lanes/b%20c/secrets": 422,
		"GET /v1/topics/a%20b/secrets": 404, "GET /v1/topics/a/lanes/b%20c/keys": 404,
		"DELETE /v1/topics/a%20b/secrets/c": 404, "DELETE /v1/topics/a/secrets/c": 404,
		"DELETE /v1/topics/a/lanes/b/secrets/c": 404,
	} {
		method, path, _ := strings.Cut(target, " ")
		w := call(t, handlerOf(f), method, path, "")
		require.Equal(t, status, w.Code, target)
		problemIn(t, w)
	}
	w := call(t, handlerOf(f), http.MethodPost, "/v1/topics/a/secrets", `secret=x`, "Content-Type",
		"application/x-www-form-urlencoded")
	require.Equal(t, http.StatusUnsupportedMediaType, w.Code)
	w = call(t, handlerOf(f), http.MethodPost, "/v1/topics/a/secrets",
		`{"secret": "`+strings.Repeat("a", request.MaxSecretBytes)+`"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	f.requireUnchanged(t)
}

func sharedBytes() string { return strings.TrimPrefix(sharedSecret.Text(), "whsec_") }

func TestAddSecret_AcceptsAnEmptyBodyWithoutALength(t *testing.T) {
	for body, status := range map[string]int{"": http.StatusCreated, "x": http.StatusUnsupportedMediaType} {
		r := httptest.NewRequest(http.MethodPost, "/v1/topics/a/secrets", iotest.OneByteReader(strings.NewReader(body)))
		r.ContentLength = -1
		w := httptest.NewRecorder()
		handlerOf(newFake()).ServeHTTP(w, r)
		require.Equal(t, status, w.Code)
	}
}

func TestAddSecret_RefusesOneTooMany(t *testing.T) {
	f := newFake()
	f.bad = &job.InvalidError{Errors: []job.FieldError{{Field: "/secret", Detail: "is one too many"}}}
	w := call(t, handlerOf(f), http.MethodPost, "/v1/topics/a/secrets", "")
	require.Equal(t, http.StatusUnprocessableEntity, w.Code)
	require.Equal(t, []string{"/secret"}, problemIn(t, w).fields())
	require.NotContains(t, w.Body.String(), "whsec_")
	require.Empty(t, w.Header().Get("Cache-Control"))
}

func TestPutTopic_KeepsSecrets(t *testing.T) {
	secrets := []policy.Secret{{ID: "s", Value: "x1:sealed"}}
	for _, target := range []string{
		"PUT /v1/topics/a", "PATCH /v1/topics/a", "POST /v1/topics/a/pause", "POST /v1/topics/a/resume",
	} {
		f := newFake()
		f.topics["a"] = store.Topic{Name: "a", Policy: policy.Topic{Secrets: secrets}}
		method, path, _ := strings.Cut(target, " ")
		w := call(t, handlerOf(f), method, path, "{}")
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, secrets, f.topics["a"].Policy.Secrets, target)
		require.NotContains(t, w.Body.String(), "sealed")
		require.NotContains(t, w.Body.String(), "secrets")
	}
}
