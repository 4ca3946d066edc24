package console

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/ringback/ringback/console/assets"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/internal/access"
)

// sections are the items of the navigation.
var sections = []struct {
	section, text, path, key string
	action                   access.Action
}{
	{"now", "Now", "", "n", access.ReadStats},
	{"topics", "Topics", "topics", "t", access.ReadTopic},
	{"jobs", "Jobs", "jobs", "j", access.ReadJob},
	{"events", "Events", "events", "v", access.ReadEvents},
	{"dead", "Dead letters", "dead", "d", access.ListJobs},
	{"work", "Work", "work", "w", access.ReadWork},
	{"schedules", "Schedules", "schedules", "s", access.ReadSchedule},
	{"try", "Try it", "try", "y", access.RegisterJob},
	{"settings", "Settings", "settings", "e", access.ReadService},
}

// view returns the data of a page's templates.
func (c *console) view(r *http.Request, v *web.Visit, page *web.Page) *web.View {
	view := &web.View{Visit: v, Page: page, Data: page.Data, Version: c.version, SignedIn: c.needsToken &&
		v.Who.Role != "", Home: v.Path(homeOf(v))}
	for _, s := range sections {
		if v.Can(s.action) {
			view.Nav = append(view.Nav, web.NavItem{
				Link: web.Link{To: v.Path(s.path), Text: s.text}, Key: s.key,
				Current: page.Section == s.section,
			})
		}
	}
	view.Assets = web.Assets{
		Style: asset(v, "style.css"), Icon: asset(v, "icon.svg"), Theme: asset(v, "theme.js"),
		Config:  assets.HTMXConfig,
		Scripts: []string{asset(v, "htmx.min.js"), asset(v, "hx-sse.min.js"), asset(v, "console.js")}, // in this order
	}
	if t := c.views[page.View]; t != nil && r.Method == http.MethodGet &&
		cmp.Or(page.Status, http.StatusOK) == http.StatusOK {
		view.HasLive = t.HasLive()
	}
	return view
}

// asset returns the link of an asset.
func asset(v *web.Visit, name string) string { return v.Root + "/" + assets.Path(name) }

// render writes a template of a view. It is rendered as a whole first, so that an error is a page of its own.
func (c *console) render(w http.ResponseWriter, r *http.Request, name, template string, view *web.View, status int) {
	t := c.views[name]
	if t == nil {
		c.log.Error("console page failed", "path", r.URL.Path, "err", "there is no view "+name)
		http.Error(w, "The page cannot be shown. The log of the server says why.", http.StatusInternalServerError)
		return
	}
	html, err := t.Render(template, view)
	if err != nil {
		c.log.Error("console page failed", "path", r.URL.Path, "view", name, "err", err)
		http.Error(w, "The page cannot be shown. The log of the server says why.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(html)))
	w.WriteHeader(cmp.Or(status, http.StatusOK))
	_, _ = w.Write(html)
}
