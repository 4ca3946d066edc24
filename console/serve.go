package console

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/ringback/ringback/access"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

// maxForm bounds a form, in bytes: a job's body of 10 MiB, each byte escaped, would not be written by hand.
const maxForm = 12 << 20

// serve serves a route.
func (c *console) serve(route web.Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
			if err := r.ParseForm(); err != nil {
				c.fail(w, r, nil, &client.Problem{Status: http.StatusRequestEntityTooLarge, Detail: "The form cannot be read: it may have up to 12 MiB."})
				return
			}
		}
		v, err := c.visit(w, r)
		if err != nil {
			c.fail(w, r, nil, err)
			return
		}
		if err := check(v, route.Action); err != nil {
			c.fail(w, r, v, err)
			return
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
		detail = string(action) + " requires a token with the role " + strings.Join(roles, " or ") + ": yours has the role " + v.Who.Role + "."
	}
	return &client.Problem{Status: http.StatusForbidden, Code: "forbidden", Detail: detail}
}

// answer writes an answer.
func (c *console) answer(w http.ResponseWriter, r *http.Request, v *web.Visit, answer web.Answer) {
	switch a := answer.(type) {
	case *web.Redirect:
		c.setNotice(w, r, a.Notice)
		if r.Header.Get("HX-Request") != "" { // fetch would follow a redirect, and show the page within this one
			w.Header().Set("HX-Redirect", a.To)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		redirect(w, a.To)
	case *web.Part:
		view := c.view(w, r, v, &web.Page{View: a.View, Data: a.Data})
		c.render(w, r, a.View, a.Template, view, a.Status)
	case *web.Page:
		c.render(w, r, a.View, "layout", c.view(w, r, v, a), a.Status)
	default:
		c.fail(w, r, v, errors.New("the page has no answer"))
	}
}

// notFound answers requests without a route.
func (c *console) notFound(w http.ResponseWriter, r *http.Request) {
	v, err := c.visit(w, r)
	if err != nil {
		c.fail(w, r, nil, err)
		return
	}
	c.fail(w, r, v, &client.Problem{Status: http.StatusNotFound, Code: "not_found", Detail: "There is no such page."})
}
