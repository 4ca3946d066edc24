package console

import (
	"net/http"
	"time"
)

// sessionTime is how long a reader stays signed in.
const sessionTime = 12 * time.Hour

// Names of cookies. The name of the key follows, so that two servers on one host, whose ports cookies do not tell
// apart, keep their own.
const (
	sessionCookie = "ringback-session"
	noticeCookie  = "ringback-notice"
	// hostPrefix makes browsers accept a cookie only over an encrypted connection, for this host, and for all its
	// paths.
	hostPrefix = "__Host-"
)

// cookieName returns the name of a cookie that is sealed with a key. Over encrypted connections it has hostPrefix:
// other hosts of the same domain can set cookies of other names.
func cookieName(r *http.Request, name, key string) string {
	if isSecure(r) {
		return hostPrefix + name + "-" + key
	}
	return name + "-" + key
}

// newCookie returns a cookie for scripts not to read and other sites not to send; without a value, one that removes it.
func newCookie(r *http.Request, name, value string, lasts time.Duration) *http.Cookie {
	//nolint:gosec // not Secure only over connections without encryption, where browsers would drop it
	cookie := &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(lasts.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: isSecure(r),
	}
	if value == "" {
		cookie.MaxAge = -1
	}
	return cookie
}

// setSealed seals a text in a cookie.
func (c *console) setSealed(w http.ResponseWriter, r *http.Request, name string, text []byte, lasts time.Duration) {
	http.SetCookie(w,
		newCookie(r, cookieName(r, name, c.seals.IDs()[0]), c.seals.Seal(name, text, c.now().Add(lasts)), lasts))
}

// drop removes a cookie, whichever key it was sealed with. Over an encrypted connection it also removes the one that
// was set without.
func (c *console) drop(w http.ResponseWriter, r *http.Request, name string) {
	for _, id := range c.seals.IDs() {
		http.SetCookie(w, newCookie(r, cookieName(r, name, id), "", 0))
		if isSecure(r) {
			http.SetCookie(w, newCookie(r, name+"-"+id, "", 0))
		}
	}
}

// end makes this process refuse a cookie of the request, also a copy of it.
func (c *console) end(r *http.Request, name string) {
	for _, id := range c.seals.IDs() {
		for _, sent := range []string{hostPrefix + name + "-" + id, name + "-" + id} {
			for _, cookie := range r.CookiesNamed(sent) {
				c.seals.End(name, cookie.Value, c.now())
			}
		}
	}
}

// open returns what was sealed in a cookie.
func (c *console) open(r *http.Request, name string) ([]byte, bool) {
	for _, id := range c.seals.IDs() {
		if cookie, err := r.Cookie(cookieName(r, name, id)); err == nil {
			if text, ok := c.seals.Open(name, cookie.Value, c.now()); ok {
				return text, true
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
