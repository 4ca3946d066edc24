package console

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/internal/access"
)

const (
	// maxToken bounds the tokens that a cookie has room for, in bytes.
	maxToken = 2048
	// maxNext bounds the paths that a reader is led on to after signing in, in bytes.
	maxNext = 1024
	// maxSignIn bounds the form to sign in, in bytes: each byte of its texts can take three, and the rest are the
	// names.
	maxSignIn = 3*(maxToken+maxNext) + 256
	// maxSignInFields bounds its fields. It has two.
	maxSignInFields = 8
	// signInTime bounds the check of a token: the form has arrived before, and the answer is sent after it.
	signInTime = limits.OpenWriteTimeout - limits.OpenReadTimeout - 2*time.Second
)

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

// isSecure reports whether the browser's connection is encrypted. Browsers send Sec-Fetch-Site over such connections,
// and over those to their own machine.
func isSecure(r *http.Request) bool {
	proto, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	return r.TLS != nil || strings.EqualFold(strings.TrimSpace(proto), "https") ||
		r.Header.Get("Sec-Fetch-Site") != "" && !isLoopback(r)
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
		// A link of another site: the browser keeps the session's cookie to itself. It sends it when this page leads
		// on.
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
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" ` +
	`content="{{.Refresh}}"><title>Ringback</title></head>
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

// safeNext returns a path below the console to go on to, or none for one that leads elsewhere or is too long.
func safeNext(next string) string {
	if len(next) > maxNext {
		return ""
	}
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.HasPrefix(next, "/") ||
		strings.ContainsAny(next, "\\\r\n\t") {
		return ""
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if part == ".." || part == "sign-in" || part == "static" {
			return ""
		}
	}
	return next
}

// errSignInForm is the error of a form that is not one to sign in.
var errSignInForm = errors.New("the form to sign in cannot be read")

// readSignIn reads the form to sign in. Many clients without a token may send one at once, and then wait for the check
// of theirs: unlike http.Request.ParseForm, it keeps nothing of the form but copies of the two fields.
func readSignIn(body io.Reader) (token, next string, err error) {
	form, err := io.ReadAll(io.LimitReader(body, maxSignIn+1))
	if err != nil || len(form) > maxSignIn || bytes.Count(form, []byte("&")) >= maxSignInFields {
		return "", "", cmp.Or(err, errSignInForm)
	}
	for field := range strings.SplitSeq(string(form), "&") {
		name, escaped, _ := strings.Cut(field, "=")
		value, err := url.QueryUnescape(escaped)
		if err != nil {
			return "", "", errSignInForm
		}
		value = strings.Clone(strings.TrimSpace(value)) // else it may be a part of the form
		switch name {
		case "token":
			token = value
		case "next":
			next = value
		}
	}
	return token, next, nil
}

// signIn checks a token and keeps it in a cookie.
func (c *console) signIn(w http.ResponseWriter, r *http.Request) {
	token, next, err := readSignIn(r.Body)
	if err != nil {
		c.showSignIn(w, r, "", "The form cannot be read. Send it again.", http.StatusBadRequest)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // its end would look as if the reader had left
	next = safeNext(next)
	if token == "" || len(token) > maxToken {
		c.showSignIn(w, r, next, "Enter a token: at most 2,048 characters.", http.StatusUnprocessableEntity)
		return
	}
	api, err := c.client(r, token, "")
	if err != nil {
		c.showSignIn(w, r, next, "A token has no spaces and no characters beyond ASCII: copy it again.",
			http.StatusUnprocessableEntity)
		return
	}
	checking, cancel := context.WithTimeout(r.Context(), signInTime)
	defer cancel()
	who, err := api.Whoami(checking)
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
