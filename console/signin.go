package console

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

const (
	// sessionTime is how long a reader stays signed in.
	sessionTime = 12 * time.Hour
	// maxToken bounds the tokens that a cookie has room for, in bytes.
	maxToken = 2048
)

// Cookies. Browsers accept __Host- cookies only from secure origins, which localhost is, for this host, and for all its paths.
const (
	sessionCookie = "ringback-session"
	noticeCookie  = "ringback-notice"
	hostPrefix    = "__Host-"
)

// isSecure reports whether the browser's connection is encrypted, or does not leave its machine.
func isSecure(r *http.Request) bool {
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		return true
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}

// newCookie returns a cookie for scripts not to read and other sites not to send.
func newCookie(r *http.Request, name, value string, lasts time.Duration) *http.Cookie {
	c := &http.Cookie{ //nolint:gosec // not Secure only where browsers would drop it: plain HTTP beyond this machine
		Name: name, Value: value, Path: "/", MaxAge: int(lasts.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: isSecure(r),
	}
	if c.Secure {
		c.Name = hostPrefix + name
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// cookie returns the value of a cookie that newCookie made.
func cookie(r *http.Request, name string) string {
	if isSecure(r) {
		name = hostPrefix + name
	}
	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// token returns the token of the reader; empty: they are not signed in.
func (c *console) token(r *http.Request) string {
	token, ok := c.seals.Open(sessionCookie, cookie(r, sessionCookie), c.now())
	if !ok {
		return ""
	}
	return string(token)
}

// forget ends the session.
func (c *console) forget(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, newCookie(r, sessionCookie, "", 0))
}

// askToSignIn sends a reader without a session to the form, or refuses what is not a page.
func (c *console) askToSignIn(w http.ResponseWriter, r *http.Request) {
	p := placeOf(r)
	switch {
	case r.Method != http.MethodGet || r.Header.Get("HX-Request") != "" || isStream(r):
		c.fail(w, r, nil, &client.Problem{Status: http.StatusUnauthorized, Detail: "You are not signed in any more: nothing was changed. Sign in, then repeat it."})
	case r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") == "navigate":
		// A link of another site: the browser keeps the cookie of a session back. It sends it when this page opens the same again.
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(`<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0"><title>Ringback</title></head><body></body></html>`))
	default:
		next := strings.TrimPrefix(p.here(r), "/")
		if p.namespace != "" {
			next = "@" + p.namespace + "/" + next
		}
		to := p.root + "/sign-in"
		if next != "" {
			to += "?next=" + url.QueryEscape(next)
		}
		redirect(w, to)
	}
}

// signInData is the data of the view sign-in.
type signInData struct {
	Next     string
	Error    string
	Open     bool // no token is needed
	Insecure bool // the token would be sent unencrypted
}

// signInForm shows the form.
func (c *console) signInForm(w http.ResponseWriter, r *http.Request) {
	c.showSignIn(w, r, safeNext(r.URL.Query().Get("next")), "", http.StatusOK)
}

func (c *console) showSignIn(w http.ResponseWriter, r *http.Request, next, sentence string, status int) {
	p := placeOf(r)
	v := &web.Visit{Request: r, Who: &client.Principal{}, Base: p.base, Root: p.root, Now: c.now()}
	api, err := c.client(r, "", "")
	open := false
	if err == nil {
		_, err = api.Whoami(r.Context())
		open = err == nil
	}
	page := &web.Page{View: "sign-in", Title: "Sign in", Data: signInData{Next: next, Error: sentence, Open: open, Insecure: !isSecure(r)}}
	c.render(w, r, "sign-in", "layout", c.view(w, r, v, page), status)
}

// safeNext returns a path below the console to go on to, or none for one that leads elsewhere.
func safeNext(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.HasPrefix(next, "/") || strings.ContainsAny(next, "\\\r\n\t") {
		return ""
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if part == ".." || part == "sign-in" || part == "static" {
			return ""
		}
	}
	return next
}

// signIn checks a token and keeps it in a cookie.
func (c *console) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		c.showSignIn(w, r, "", "The form cannot be read. Send it again.", http.StatusBadRequest)
		return
	}
	next := safeNext(r.PostFormValue("next"))
	token := strings.TrimSpace(r.PostFormValue("token"))
	if token == "" || len(token) > maxToken {
		c.showSignIn(w, r, next, "Enter a token: at most 2,048 characters.", http.StatusUnprocessableEntity)
		return
	}
	api, err := c.client(r, token, "")
	if err != nil {
		c.showSignIn(w, r, next, "A token has no spaces and no characters beyond ASCII: copy it again.", http.StatusUnprocessableEntity)
		return
	}
	switch _, err := api.Whoami(r.Context()); {
	case errors.Is(err, client.ErrUnauthorized):
		sentence := "This token is not known, or has expired or been revoked."
		if p, ok := errors.AsType[*client.Problem](err); ok && p.Detail != "" {
			sentence = "The token is refused: " + p.Detail + "."
		}
		c.showSignIn(w, r, next, sentence, http.StatusUnauthorized)
		return
	case err != nil:
		c.fail(w, r, nil, err)
		return
	}
	http.SetCookie(w, newCookie(r, sessionCookie, c.seals.Seal(sessionCookie, []byte(token), c.now().Add(sessionTime)), sessionTime))
	redirect(w, "./"+next)
}

// signOut ends the session.
func (c *console) signOut(w http.ResponseWriter, r *http.Request) {
	c.forget(w, r)
	redirect(w, placeOf(r).root+"/sign-in")
}
