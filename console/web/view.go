package web

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/ringback/ringback/internal/access"
)

// View is the data of a page's templates.
type View struct {
	*Visit

	Page   *Page
	Data   any
	Notice *Notice
	// Nav are the sections that the token may see.
	Nav []NavItem
	// Version is the server's.
	Version string
	// Home is the link of the first page that the token may see.
	Home string
	// SignedIn reports whether the reader can sign out.
	SignedIn bool
	// Assets are the paths of stylesheet and scripts.
	Assets Assets
	// HasLive reports whether the page has live blocks.
	HasLive bool
}

// Assets are the links of the assets.
type Assets struct {
	Style, Icon string
	// Theme is the script that runs before the page is painted, Scripts those that run later.
	Theme   string
	Scripts []string
	// Config configures htmx.
	Config string
}

// NavItem is an item of the navigation.
type NavItem struct {
	Link

	Key     string // which follows g on the keyboard
	Current bool
}

// Can reports whether the role allows an action, for templates.
func (v *View) Can(action string) bool { return v.Visit.Can(access.Action(action)) }

// CanTopic is Can for an action on a topic.
func (v *View) CanTopic(action, topic string) bool {
	return v.Visit.CanTopic(access.Action(action), topic)
}

// CanAll is Can for an action on all topics.
func (v *View) CanAll(action string) bool { return v.Visit.CanAll(access.Action(action)) }

// With is the view with other data, for templates that are used by several.
func (v *View) With(data any) *View {
	other := *v
	other.Data = data
	return &other
}

// Time returns a time as HTML: its clock time, with the date if it is not of today; the whole of it as a title. Times
// are in UTC; scripts add the local time to the title.
func (v *View) Time(t time.Time) template.HTML { return v.time(t, "15:04:05", "2006-01-02 15:04") }

// Moment is Time with milliseconds, for what follows one another.
func (v *View) Moment(t time.Time) template.HTML {
	return v.time(t, "15:04:05.000", "2006-01-02 15:04:05.000")
}

func (v *View) time(t time.Time, clock, full string) template.HTML {
	if t.IsZero() {
		return `<span class="muted">–</span>`
	}
	t = t.UTC()
	text := t.Format(clock)
	if t.Format(time.DateOnly) != v.Now.UTC().Format(time.DateOnly) {
		text = t.Format(full)
	}
	//nolint:gosec // digits and punctuation
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`,
		t.Format(time.RFC3339Nano), t.Format("2006-01-02 15:04:05.000 MST"), text))
}

// Link returns a link to a path of the console with a query of names and values.
func (v *View) Link(path string, pairs ...string) string { return v.PathQuery(v.Path()+path, pairs...) }

// Refresh returns the link of this page.
func (v *View) Refresh() string { return v.Base + "/" + v.Here }

// LiveLink returns the link of the stream of the page's live blocks.
func (v *View) LiveLink() string {
	to := v.Refresh()
	if strings.Contains(v.Here, "?") {
		return to + "&live=1"
	}
	return to + "?live=1"
}
