package console

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

// pageTime bounds the requests of a page.
const pageTime = 10 * time.Second

// errSignIn is the error of a visit without a valid token, where one is required.
var errSignIn = errors.New("sign in")

// visit returns whose a request is. errSignIn says that the reader has to sign in.
func (c *console) visit(w http.ResponseWriter, r *http.Request) (*web.Visit, error) {
	p := placeOf(r)
	token := c.token(r)
	if token == "" && c.needsToken {
		return nil, errSignIn
	}
	api, err := c.client(r, token, p.namespace)
	if err != nil {
		return nil, errSignIn // the token in the cookie is no token
	}
	who, err := api.Whoami(r.Context())
	if problem, ok := errors.AsType[*client.Problem](err); ok && (problem.Status == http.StatusUnauthorized ||
		problem.Code == "too_many_failures") {
		c.drop(w, r, sessionCookie)
		return nil, errSignIn
	}
	if err != nil {
		return nil, err
	}
	return &web.Visit{
		Request: r, API: api, Who: who, Namespace: who.Namespace, Audience: hashOf(token) + "@" + p.namespace,
		Base: p.base, Root: p.root, Here: p.here(r), Now: c.now(),
	}, nil
}

// hashOf returns a text that identifies a token.
func hashOf(token string) string {
	hash := sha256.Sum256([]byte(token))
	return hex.EncodeToString(hash[:16])
}

// client returns a client of the API in this process.
func (c *console) client(r *http.Request, token, namespace string) (*client.Client, error) {
	api, err := client.New("http://console.invalid", client.Options{
		Token: token, Namespace: namespace, Timeout: pageTime, MaxRetries: -1, UserAgent: "ringback-console",
		HTTP: &http.Client{Transport: &Transport{Handler: c.api, RemoteAddr: r.RemoteAddr}},
	})
	if err != nil {
		return nil, fmt.Errorf("call the API: %w", err)
	}
	return api, nil
}
