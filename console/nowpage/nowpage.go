package nowpage

import (
	"embed"
	"html/template"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/sampler"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/internal/access"
)

//go:embed templates
var files embed.FS

// shown is the time that the charts show.
const shown = 15 * time.Minute

// pages has what the page remembers between visits.
type pages struct {
	samplers *sampler.Samplers
	// by audience: a search of many lanes takes 100 ms, and the page is made every 2 s
	held sampler.AnswerCache[*client.TroubledLanes]
}

// New returns the page.
func New(samplers *sampler.Samplers) web.Pages {
	p := &pages{samplers: samplers}
	return web.Pages{
		Name: "nowpage", Files: files, Routes: []web.Route{web.Get("", access.ReadStats, p.now)},
		Funcs: template.FuncMap{
			"reasonPill": reasonPill, "untilText": untilText, "failureText": failureText, "waiting": waiting,
		},
	}
}

// now is the data of the page.
type now struct {
	*state

	Lead  lead
	Start *start // what to do on a server without jobs; nil: there are some
	Cards []card
	// Charts are nil while there is nothing to draw.
	Charts *charts
	Lanes  []*client.TroubledLane
	// LanesNote says what the table of lanes lacks.
	LanesNote string
	Paused    []pause
	Carrier   carrier
	Samples   string // how complete the charts are
}

// now serves the page.
func (p *pages) now(v *web.Visit) (web.Answer, error) {
	s, err := p.read(v)
	if err != nil {
		return nil, err
	}
	s.samples = p.samplers.Visit(v.Audience, v.Namespace, v.API, s.Restricted == nil, shown)
	data := &now{
		state: s, Lead: s.lead(), Cards: s.cards(), Charts: newCharts(&s.samples), Lanes: s.lanes(),
		LanesNote: s.lanesNote(), Paused: s.pauses(), Carrier: s.carrier(), Samples: s.completeness(),
	}
	if s.isFresh() && s.fault == "" {
		data.Start = newStart(v)
	}
	return &web.Page{View: "now", Reload: true, Title: "Now", Section: "now", Data: data}, nil
}
