package console

import (
	"net/http"
	"time"
)

// sessionTime is how long a reader stays signed in.
const sessionTime = 12 * time.Hour

// Names of cookies. The name of the key follows, so that two servers on one host, whose ports cookies do not tell apart, keep their own.
const (
	sessionCookie = "ringback-session"
	noticeCookie  = "ringback-notice"
	// hostPrefix makes browsers accept a cookie only over an encrypted connection, for this host, and for all its paths.
	hostPrefix = "__Host-"
)

// newCookie returns a cookie for scripts not to read and other sites not to send; without a value, one that removes it. key names the
// key that seals it.
func newCookie(r *http.Request, name, key, value string, lasts time.Duration) *http.Cookie {
	cookie := &http.Cookie{ //nolint:gosec // not Secure only over connections without encryption, where browsers would drop it
		Name: name + "-" + key, Value: value, Path: "/", MaxAge: int(lasts.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: isSecure(r),
	}
	if cookie.Secure {
		cookie.Name = hostPrefix + cookie.Name
	}
	if value == "" {
		cookie.MaxAge = -1
	}
	return cookie
}

// setSealed seals a text in a cookie.
func (c *console) setSealed(w http.ResponseWriter, r *http.Request, name string, text []byte, lasts time.Duration) {
	http.SetCookie(w, newCookie(r, name, c.seals.IDs()[0], c.seals.Seal(name, text, c.now().Add(lasts)), lasts))
}

// drop removes a cookie, whichever key it was sealed with.
func (c *console) drop(w http.ResponseWriter, r *http.Request, name string) {
	for _, id := range c.seals.IDs() {
		http.SetCookie(w, newCookie(r, name, id, "", 0))
	}
}

// open returns what was sealed in a cookie.
func (c *console) open(r *http.Request, name string) ([]byte, bool) {
	for _, id := range c.seals.IDs() {
		for _, prefix := range []string{hostPrefix, ""} {
			if cookie, err := r.Cookie(prefix + name + "-" + id); err == nil {
				if text, ok := c.seals.Open(name, cookie.Value, c.now()); ok {
					return text, true
				}
			}
		}
	}
	return nil, false
}

// token returns the token of the reader; empty: they are not signed in.
func (c *console) token(r *http.Request) string {
	token, _ := c.open(r, sessionCookie)
	return string(token)
}
