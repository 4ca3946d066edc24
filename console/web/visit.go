package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/internal/access"
)

// Visit is a request for a page: what is requested, by whom, and how links are written.
type Visit struct {
	// Request is the request. A POST's form is parsed.
	Request *http.Request
	// API calls the API with the token of the reader, in the namespace of the page.
	API *client.Client
	// Who is the token's principal.
	Who *client.Principal
	// Namespace is that of the page.
	Namespace string
	// Audience identifies the token and the namespace: what it may see is the same for all visits with the same
	// Audience.
	Audience string
	// Base is the relative path of the page Now in the page's namespace, without a slash at the end: . or .. or ../..
	Base string
	// Root is the same of the default namespace, where signing in and assets are.
	Root string
	// Here is the path of the page below Base, with its query.
	Here string
	// Now is the time of the request.
	Now time.Time
	// Live reports whether the page's live blocks are rendered again, not the page.
	Live bool
}

// Path returns a relative link to a path of the console, whose parts are escaped.
func (v *Visit) Path(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, part := range parts {
		escaped[i] = url.PathEscape(part)
	}
	return v.Base + "/" + strings.Join(escaped, "/")
}

// PathQuery is Path with a query of names and values; pairs whose value is empty are left out.
func (v *Visit) PathQuery(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Add(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// Can reports whether the token's role allows an action. The API decides: it refuses the request whatever a page shows.
func (v *Visit) Can(action access.Action) bool {
	p := access.Principal{Role: access.Role(v.Who.Role), Root: v.Who.Root}
	return p.Allows(action)
}

// CanTopic is Can for an action that concerns a topic: a token may be restricted to some.
func (v *Visit) CanTopic(action access.Action, topic string) bool {
	return v.Can(action) && access.Topics(v.Who.Topics).Match(topic)
}

// CanAll is Can for an action that concerns all topics of the namespace.
func (v *Visit) CanAll(action access.Action) bool { return v.Can(action) && len(v.Who.Topics) == 0 }

// Query returns a parameter of the request's query, without spaces around it.
func (v *Visit) Query(name string) string {
	return strings.TrimSpace(v.Request.URL.Query().Get(name))
}

// Form returns a field of the request's form, without spaces around it.
func (v *Visit) Form(name string) string { return strings.TrimSpace(v.Request.PostFormValue(name)) }

// FormText returns a field of the form as it was sent, with line ends as \n.
func (v *Visit) FormText(name string) string {
	return strings.ReplaceAll(v.Request.PostFormValue(name), "\r\n", "\n")
}

// unfinishedTime bounds the page after a request that took all the time of a page.
const unfinishedTime = 2 * time.Second

// Overdue reports whether the time of the page has ended: the API goes on with what it was asked for, or ends it in
// part.
func (v *Visit) Overdue() bool { return errors.Is(v.Request.Context().Err(), context.DeadlineExceeded) }

// MoreTime returns a visit with time for another page, once that of this one has ended. done ends its use.
func (v *Visit) MoreTime() (more *Visit, done context.CancelFunc) {
	ctx, done := context.WithTimeout(context.WithoutCancel(v.Request.Context()), unfinishedTime)
	other := *v
	other.Request = v.Request.WithContext(ctx)
	return &other, done
}

// PathValue returns a wildcard of the route's path.
func (v *Visit) PathValue(name string) string { return v.Request.PathValue(name) }
