package web

import (
	"html/template"
	"io/fs"
	"net/http"

	"github.com/ringback/ringback/internal/access"
)

// Answer is what a page answers: a *Page, a *Part or a *Redirect.
type Answer interface{ isAnswer() }

// Page is a whole page.
type Page struct {
	// View is the name of its template: that of its file, without .html.
	View string
	// Title is the title of the browser's tab, without the product's name. No two pages have the same.
	Title string
	// Section is the item of the navigation that is current: now, topics, jobs, events, dead, work, schedules, try or
	// settings.
	Section string
	// Crumbs lead from the section to the page; the page itself is not among them.
	Crumbs []Link
	// Status is the HTTP status; zero: 200. Only pages with 200 are live.
	Status int
	// Reload: without JavaScript the page is loaded again every 10 s. It has no form in which people write.
	Reload bool
	// Data is .Data in the templates.
	Data any
}

// Part is one template of a page alone, for a script that replaces a part of the page. It has no links: they are
// relative, and the page that it becomes a part of has another path than its request.
type Part struct {
	View, Template string
	Data           any
	Status         int
}

// Redirect answers a POST: the browser gets another page, which shows a notice.
type Redirect struct {
	// To is the link, as Visit.Path returns it.
	To     string
	Notice Notice
}

func (*Page) isAnswer()     {}
func (*Part) isAnswer()     {}
func (*Redirect) isAnswer() {}

// Notice is a sentence about what was done, which the next page shows once.
type Notice struct {
	Kind string `json:"k"` // ok, warn or bad
	Text string `json:"t"`
	// Secret is shown beside the text to be copied: it is shown only here.
	Secret string `json:"s,omitempty"`
}

// Done leads to a page that says what was done.
func Done(to, text string) *Redirect {
	return &Redirect{To: to, Notice: Notice{Kind: "ok", Text: text}}
}

// Warn leads to a page that says why nothing was done, or what to do next.
func Warn(to, text string) *Redirect {
	return &Redirect{To: to, Notice: Notice{Kind: "warn", Text: text}}
}

// Link is a link and its text.
type Link struct{ To, Text string }

// Serve answers a visit. A *client.Problem as error is shown as the API's answer: a form is better answered with
// FormErrors.
type Serve func(v *Visit) (Answer, error)

// Route is a method and a path of the console.
type Route struct {
	Method string
	// Path is the path below the console's, such as jobs/{id}. Empty: the console's first page.
	Path string
	// Action is the API's action that the token must allow. It is refused otherwise, before Serve is called. The API
	// decides about topics.
	Action access.Action
	Serve  Serve
	// Large: the form has room for the body of a job. Others have up to 256 KiB.
	Large bool
}

// Get returns the route of a page.
func Get(path string, action access.Action, serve Serve) Route {
	return Route{Method: http.MethodGet, Path: path, Action: action, Serve: serve}
}

// Post returns the route of a form.
func Post(path string, action access.Action, serve Serve) Route {
	return Route{Method: http.MethodPost, Path: path, Action: action, Serve: serve}
}

// PostJob is Post for a form with the body of a job.
func PostJob(path string, action access.Action, serve Serve) Route {
	return Route{Method: http.MethodPost, Path: path, Action: action, Serve: serve, Large: true}
}

// Pages are the pages of a package.
type Pages struct {
	// Name is the name of the package, for errors.
	Name   string
	Routes []Route
	// Files has the folder templates. Funcs are functions that only these templates have.
	Files fs.FS
	Funcs template.FuncMap
}
