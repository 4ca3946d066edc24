package console

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/inprocess"
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
	api, err := c.client(r, token, p.namespace)
	if err != nil {
		return nil, errSignIn // the token in the cookie is no token
	}
	who, err := api.Whoami(r.Context())
	switch {
	case errors.Is(err, client.ErrUnauthorized):
		if token != "" {
			c.forget(w, r)
		}
		return nil, errSignIn
	case err != nil:
		return nil, err
	}
	hash := sha256.Sum256([]byte(token + "\x00" + p.namespace))
	return &web.Visit{
		Request: r, API: api, Who: who, Namespace: who.Namespace, Audience: hex.EncodeToString(hash[:16]),
		Base: p.base, Root: p.root, Here: p.here(r), Now: c.now(),
	}, nil
}

// client returns a client of the API in this process.
func (c *console) client(r *http.Request, token, namespace string) (*client.Client, error) {
	api, err := client.New("http://console.invalid", client.Options{
		Token: token, Namespace: namespace, Timeout: pageTime, MaxRetries: -1, UserAgent: "ringback-console",
		HTTP: &http.Client{Transport: &inprocess.Transport{Handler: c.api, RemoteAddr: r.RemoteAddr}},
	})
	if err != nil {
		return nil, fmt.Errorf("call the API: %w", err)
	}
	return api, nil
}
