package console

import (
	"cmp"
	"errors"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/ringback/ringback/access"
	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

// maxToken bounds the tokens that a cookie has room for, in bytes.
const maxToken = 2048

// isLoopback reports whether the browser is on the server's machine, or reaches it through a tunnel that ends there.
func isLoopback(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.Unmap().IsLoopback()
}

// isSecure reports whether the browser's connection is encrypted. Browsers send Sec-Fetch-Site over such connections, and over those
// to their own machine.
func isSecure(r *http.Request) bool {
	proto, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return r.TLS != nil || strings.EqualFold(strings.TrimSpace(proto), "https") || r.Header.Get("Sec-Fetch-Site") != "" && !isLoopback(r)
}

// askToSignIn sends a reader without a session to the form, or refuses what is not a page.
func (c *console) askToSignIn(w http.ResponseWriter, r *http.Request) {
	p := placeOf(r)
	to := p.root + "/sign-in"
	next := strings.TrimPrefix(p.here(r), "/")
	if p.namespace != "" {
		next = "@" + p.namespace + "/" + next
	}
	to += "?next=" + url.QueryEscape(next) // also if it is empty: it says that the reader may be signed in
	site := r.Header.Get("Sec-Fetch-Site")
	switch {
	case isStream(r):
		http.Error(w, "Sign in.", http.StatusUnauthorized)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		f := failure{
			Status: http.StatusUnauthorized, Title: "You are not signed in", SignIn: p.root + "/sign-in",
			Detail: "Nothing was changed. Sign in, then load this page again and confirm that it is sent again.",
		}
		c.showFailure(w, r, nil, f)
	case site == "cross-site" || site == "":
		// A link of another site: the browser keeps the session's cookie to itself. It sends it when this page leads on.
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if site == "cross-site" {
			to = ""
		}
		refresh := "0"
		if to != "" {
			refresh = "0; url=" + to
		}
		_ = leadOn.Execute(w, struct{ Refresh, To string }{refresh, to}) // fails only when the reader is gone
	default:
		redirect(w, to)
	}
}

// leadOn is a page that leads to another, or loads itself again.
var leadOn = template.Must(template.New("lead on").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="{{.Refresh}}"><title>Ringback</title></head>
<body>{{with .To}}<a href="{{.}}">Sign in</a>{{end}}</body></html>
`))

// signInData is the data of the view sign-in.
type signInData struct {
	Next     string
	Error    string
	Open     bool // no token is needed
	Insecure bool // the token would be sent unencrypted
}

// signInForm shows the form. Readers who were led here although they are signed in go on.
func (c *console) signInForm(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	next := safeNext(q.Get("next"))
	if q.Has("next") && c.needsToken {
		if v, err := c.visit(w, r); err == nil {
			redirect(w, "./"+cmp.Or(next, homeOf(v)))
			return
		}
	}
	c.showSignIn(w, r, next, "", http.StatusOK)
}

func (c *console) showSignIn(w http.ResponseWriter, r *http.Request, next, sentence string, status int) {
	p := placeOf(r)
	v := &web.Visit{Request: r, Who: &client.Principal{}, Base: p.base, Root: p.root, Now: c.now()}
	page := &web.Page{View: "sign-in", Title: "Sign in", Status: status, Data: signInData{
		Next: next, Error: sentence, Open: !c.needsToken, Insecure: !isSecure(r) && !isLoopback(r),
	}}
	c.render(w, r, "sign-in", "layout", c.view(r, v, page), status)
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
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10) // a token, and a path that a header had room for
	if err := r.ParseForm(); err != nil {
		c.showSignIn(w, r, "", "The form cannot be read. Send it again.", http.StatusBadRequest)
		return
	}
	rc := http.NewResponseController(w) // errors mean that there is no connection
	_ = rc.SetReadDeadline(time.Time{}) // its end would look as if the reader had left
	_ = rc.SetWriteDeadline(time.Now().Add(pageTime + limits.OpenWriteTimeout))
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
	who, err := api.Whoami(r.Context())
	switch {
	case errors.Is(err, client.ErrUnauthorized):
		sentence := "This token is not known, or has expired or been revoked."
		if p, ok := errors.AsType[*client.Problem](err); ok && p.Detail != "" {
			sentence = "The token is refused: " + strings.TrimSuffix(p.Detail, ".") + "."
		}
		c.showSignIn(w, r, next, sentence, http.StatusUnauthorized)
		return
	case err != nil:
		c.fail(w, r, nil, err)
		return
	}
	c.setSealed(w, r, sessionCookie, []byte(token), sessionTime)
	redirect(w, "./"+cmp.Or(next, homeOf(&web.Visit{Who: who})))
}

// homeOf returns the path of the first page that a token may see.
func homeOf(v *web.Visit) string {
	for _, s := range sections {
		if s.action != access.ReadService && v.Can(s.action) {
			return s.path
		}
	}
	return "settings"
}

// signOut ends the session, copies of its cookie included, and the streams of its token.
func (c *console) signOut(w http.ResponseWriter, r *http.Request) {
	if token := c.token(r); token != "" {
		c.live.end(hashOf(token))
	}
	c.end(r, sessionCookie)
	c.drop(w, r, sessionCookie)
	redirect(w, placeOf(r).root+"/sign-in")
}
