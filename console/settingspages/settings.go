package settingspages

import (
	"errors"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/internal/access"
)

// settingsData is the data of the view settings.
type settingsData struct {
	Lead, Class string
	Who         identity
	Server      *client.Version
	Stores      []client.StoreReadiness
	// NotReady is why no store is ready; empty: one is.
	NotReady string
	Below    []subpage
}

// identity is whose a token is and what it may do, in words.
type identity struct {
	Name, ID, Role, Namespace, Topics, Bodies string
	Ends                                      time.Time
}

// subpage is a page below the section.
type subpage struct {
	web.Link

	What string
}

// settings shows whose the token is, and what server it is.
func (p *pages) settings(v *web.Visit) (web.Answer, error) {
	data := settingsData{Who: identityOf(v.Who), Below: p.below(v)}
	data.Lead, data.Class = leadOf(v.Who, v.Now)
	var err error
	if data.Server, err = v.API.Version(v.Request.Context()); err != nil {
		return nil, err
	}
	ready, err := v.API.Ready(v.Request.Context())
	problem, is := errors.AsType[*client.Problem](err)
	switch {
	case err == nil:
		data.Stores = ready.Stores
	case is && errors.Is(err, client.ErrUnavailable):
		data.NotReady = words.Sentence("No store is ready:", strings.TrimPrefix(problem.Detail, "not ready: "))
	default:
		return nil, err
	}
	return &web.Page{View: "settings", Title: "Settings", Section: section, Data: data}, nil
}

// leadOf says in a sentence whose the token is.
func leadOf(who *client.Principal, now time.Time) (sentence, class string) {
	switch {
	case who.Actor == "":
		return "This server needs no token: whoever reaches it may do everything.", "warn"
	case who.Root:
		return "You are root: your token may do everything, in all namespaces.", ""
	}
	ends := "does not end"
	if !who.ExpiresAt.IsZero() {
		ends = "ends " + words.In(who.ExpiresAt, now)
	}
	return "You are " + who.Actor + ": your token has the role " + who.Role + ", in the namespace " + who.Namespace +
		", and " + ends + ".", ""
}

// identityOf returns whose a token is, in words.
func identityOf(who *client.Principal) identity {
	id := identity{
		Name: who.Actor, ID: who.TokenID, Role: who.Role + ": " + words.Role(who.Role),
		Namespace: who.Namespace, Ends: who.ExpiresAt, Topics: topicsText(who.Topics), Bodies: bodiesText(who.Bodies),
	}
	if who.Root {
		id.Role = who.Role + ": does everything in all namespaces"
	}
	return id
}

// topicsText says to which topics a token is restricted.
func topicsText(patterns []string) string {
	if len(patterns) == 0 {
		return "all"
	}
	return strings.Join(patterns, ", ")
}

// bodiesText says whether a token reads bodies.
func bodiesText(bodies bool) string {
	if bodies {
		return "shown"
	}
	return "not shown: neither those of jobs nor those of receivers' answers"
}

// below returns the pages that the token may see.
func (p *pages) below(v *web.Visit) []subpage {
	var all []subpage
	for _, page := range []struct {
		action           access.Action
		path, text, what string
	}{
		{access.ReadTokens, "tokens", "Tokens", "who may use the API and this console, with which role, and until " +
			"when"},
		{access.ReadNamespaces, "namespaces", "Namespaces", "separate jobs, topics and tokens, each with a quota"},
		{readProcess, "in-force", "In force", "the settings that this process was started with, and where each comes " +
			"from"},
		{
			readProcess, "checks", "Checks",
			"what is wrong with this process, its settings and its stores, and what to do",
		},
	} {
		if v.Can(page.action) {
			all = append(all, subpage{web.Link{To: v.Path("settings", page.path), Text: page.text}, page.what})
		}
	}
	return all
}
