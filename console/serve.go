package console

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/capacity"
)

const (
	// maxForm bounds forms in bytes, besides the body of a job.
	maxForm = 256 << 10
	// escaped is what a byte of a body can take in a form, apart from line ends: of these a body may have fewer.
	escaped = 3
)

// serve serves a route.
func (c *console) serve(route web.Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := c.visit(w, r)
		if err != nil {
			c.failUnknown(w, r, err)
			return
		}
		if err := check(v, route.Action); err != nil {
			c.fail(w, r, v, err)
			return
		}
		if err := checkText(r.URL.Query(), "?"); err != nil {
			c.fail(w, r, v, err)
			return
		}
		if r.Method == http.MethodPost { // of readers that are known, and may do it
			if err := checkNoQuery(r); err != nil {
				c.fail(w, r, v, err)
				return
			}
			done, err := c.readForm(w, r, v.Namespace, route.Large)
			defer done()
			if err != nil {
				c.fail(w, r, v, err)
				return
			}
		}
		if r.Method == http.MethodGet && isStream(r) {
			c.watch(w, r, v, route)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), pageTime)
		defer cancel()
		v.Request = r.WithContext(ctx)
		answer, err := route.Serve(v)
		if err != nil {
			c.fail(w, r, v, err)
			return
		}
		c.answer(w, r, v, answer)
	})
}

// Bounds of the fields and parameters that an error names, and of their names in runes.
const (
	maxNamed      = 10
	maxNamedRunes = 64
)

// checkNoQuery refuses a form with parameters in its URL. No page writes them there, and pages read what they change
// from the body: a filter in the URL would be ignored, and more be changed than was meant.
func checkNoQuery(r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	return problemOf(slices.Sorted(maps.Keys(r.URL.Query())), "?", // without what cannot be read
		"Nothing was changed: the URL that a form is sent to has no parameters. Open the page of the form, and send "+
			"it from there.",
		"is not a parameter here: it is a field of the form, or nothing")
}

// checkText refuses fields of a form, or parameters of a query, that are not UTF-8: the API takes no others. The prefix
// precedes their names.
func checkText(values url.Values, prefix string) error {
	var names []string
	for name, all := range values {
		if !utf8.ValidString(name) ||
			slices.ContainsFunc(all, func(text string) bool { return !utf8.ValidString(text) }) {
			names = append(names, strings.ToValidUTF8(name, "\ufffd"))
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return problemOf(names, prefix, "Some text of the request is not UTF-8, so nothing was changed. Send it in "+
		"UTF-8, as browsers do.", "is not UTF-8")
}

// problemOf returns a problem that names the first fields of a request, each with the same detail.
func problemOf(names []string, prefix, detail, each string) *client.Problem {
	p := &client.Problem{Status: http.StatusUnprocessableEntity, Code: "invalid_request", Detail: detail}
	for _, name := range names[:min(len(names), maxNamed)] {
		p.Errors = append(p.Errors, client.FieldError{Field: prefix + words.Cut(name, maxNamedRunes), Detail: each})
	}
	return p
}

// readForm reads the form of a request. done ends its use.
func (c *console) readForm(
	w http.ResponseWriter, r *http.Request, namespace string, large bool,
) (done func(), err error) {
	done = func() {}
	limit := int64(maxForm)
	if large && (r.ContentLength > maxForm || r.ContentLength < 0) {
		holder := capacity.Holder{Namespace: namespace}
		if err := c.large.TryAcquire(holder, 1); err != nil {
			return done, &client.Problem{
				Status: http.StatusServiceUnavailable, Code: "overloaded", Detail: err.Error(),
			}
		}
		done, limit = func() { c.large.Release(holder, 1) }, maxForm+escaped*c.maxBody
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	err = r.ParseForm()
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return done, &client.Problem{Status: http.StatusRequestEntityTooLarge, Detail: "The form is too large."}
	}
	if err != nil {
		return done, &client.Problem{Status: http.StatusBadRequest, Detail: "The form cannot be read."}
	}
	return done, checkText(r.PostForm, "")
}

// check refuses a visit whose token does not allow an action.
func check(v *web.Visit, action access.Action) error {
	if action == access.Open || v.Can(action) {
		return nil
	}
	detail := string(action) + " requires a root token."
	if !action.NeedsRoot() {
		var roles []string
		for _, role := range access.RolesFor(action) {
			roles = append(roles, string(role))
		}
		detail = string(action) + " requires a token with the role " + strings.Join(roles, " or ") +
			": yours has the role " + v.Who.Role + "."
	}
	return &client.Problem{Status: http.StatusForbidden, Code: "forbidden", Detail: detail}
}

// answer writes an answer.
func (c *console) answer(w http.ResponseWriter, r *http.Request, v *web.Visit, answer web.Answer) {
	switch a := answer.(type) {
	case *web.Redirect:
		to, err := target(r, a.To)
		if err != nil {
			c.fail(w, r, v, err)
			return
		}
		c.setNotice(w, r, to, a.Notice)
		redirect(w, a.To)
	case *web.Part:
		c.render(
			w, r, a.View, a.Template, c.view(r, v, &web.Page{View: a.View, Data: a.Data, Status: a.Status}), a.Status,
		)
	case *web.Page:
		view := c.view(r, v, a)
		if r.Method != http.MethodHead { // programs that look at links do not show it
			view.Notice = c.takeNotice(w, r)
		}
		c.render(w, r, a.View, "layout", view, a.Status)
	default:
		c.fail(w, r, v, errors.New("the page has no answer"))
	}
}

// target returns the path in the console, as this server sees it, that a relative link leads to.
func target(r *http.Request, to string) (*url.URL, error) {
	p := placeOf(r)
	from := Prefix + strings.TrimPrefix(p.escaped, "/")
	if p.namespace != "" {
		from = Prefix + "@" + p.namespace + p.escaped
	}
	base, err := url.Parse(from)
	if err != nil {
		return nil, err
	}
	found, err := base.Parse(to)
	if err == nil && !strings.HasPrefix(found.EscapedPath(), Prefix) {
		err = errors.New("the redirect to " + to + " leaves the console")
	}
	return found, err
}

// notFound answers requests without a route.
func (c *console) notFound(w http.ResponseWriter, r *http.Request) {
	v, err := c.visit(w, r)
	if err != nil {
		c.failUnknown(w, r, err)
		return
	}
	c.fail(w, r, v, &client.Problem{Status: http.StatusNotFound, Code: "not_found", Detail: "There is no such page."})
}
