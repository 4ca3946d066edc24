package browser

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pageCase is a page of testdata/pages.txt.
type pageCase struct {
	name, path string
	once       bool
}

// pages returns the pages of a service that is seeded, and starts the work that one of them shows.
func (s *service) pages(t *testing.T) (pages []pageCase) {
	t.Helper()
	names := strings.NewReplacer("WORK", s.reviveAll(t), "TOKEN", s.token, "LONG", longName)
	text, err := os.ReadFile("testdata/pages.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		path := names.Replace(fields[1])
		if path == "." {
			path = ""
		}
		pages = append(pages, pageCase{name: fields[0], path: path, once: len(fields) > 2 && fields[2] == "once"})
	}
	return pages
}

// widest is the width of a page's content in pixels.
const widest = `Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)`

// highestRow is the height of the highest row of a list in pixels, and hiddenActions the number of the buttons in rows
// that are beyond the edge of the screen.
const (
	highestRow    = `Math.max(0, ...[...document.querySelectorAll('table.compact tbody tr')].map(r => r.offsetHeight))`
	hiddenActions = `[...document.querySelectorAll('table.compact :is(button, .button)')].
filter(b => b.getBoundingClientRect().right > innerWidth).length`
)

func TestPages_AreAccessibleInLightAndDarkAndFitNarrowScreens(t *testing.T) {
	t.Parallel()
	s := startService(t, "")
	s.seed(t, hostile)
	pages := s.pages(t)
	b := s.open(t)
	b.signIn(rootToken)
	titles := make(map[string]string)
	links := make(map[string]string)
	for _, p := range pages {
		b.goTo(p.path)
		title := value[string](b, `document.title`)
		assert.Empty(t, titles[title], "%s and %s have the title %s", titles[title], p.name, title)
		titles[title] = p.name
		assert.Equal(t, 1, value[int](b, `document.querySelectorAll('h1').length`), "%s has one heading", p.name)
		assert.NotEmpty(t, value[string](b, `document.querySelector('.lead') ? `+
			`document.querySelector('.lead').innerText : ''`), "%s begins with a sentence", p.name)
		assert.NotContains(t, value[string](b, `document.querySelector('main').innerText`), "..",
			"%s: sentences end once", p.name)
		for _, to := range b.links() {
			links[to] = p.name
		}
		if p.once {
			continue
		}
		b.checkAccess(p.name + ", light")
		b.dark(true)
		b.checkAccess(p.name+", dark", "color-contrast")
		b.dark(false)
		b.do(chromedp.EmulateViewport(360, 740))
		assert.LessOrEqual(t, value[int](b, widest), 360, "%s scrolls sideways on a narrow screen", p.name)
		b.do(chromedp.EmulateViewport(390, 740))
		assert.Less(t, value[int](b, highestRow), 120, "%s: a row of a list is high on a narrow screen", p.name)
		assert.Zero(t, value[int](b, hiddenActions), "%s: actions of rows are in sight on a narrow screen", p.name)
		b.do(chromedp.ResetViewport())
	}
	requireLinksLead(t, b, links)
}

// requireLinksLead requests what the links of the pages lead to, as the browser that is signed in.
func requireLinksLead(t *testing.T, b *tab, links map[string]string) {
	t.Helper()
	for to, page := range links {
		status := value[int](b, `(() => { const r = new XMLHttpRequest(); r.open('GET', `+quote(to)+
			`, false); r.send(); return r.status })()`)
		assert.Equal(t, http.StatusOK, status, "the link of %s to %s", page, to)
	}
}

// quote returns a text as a literal of JavaScript.
func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(text) + "'"
}
