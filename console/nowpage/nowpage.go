package nowpage

import (
	"embed"
	"html/template"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/recent"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/internal/access"
)

//go:embed templates
var files embed.FS

// pages has what the page remembers between visits.
type pages struct {
	answers *recent.Answers
	// by audience: a search of many lanes takes 100 ms, and the page is made every 2 s
	troubled recent.Cache[*client.TroubledLanes]
}

// New returns the page.
func New(answers *recent.Answers) web.Pages {
	p := &pages{answers: answers}
	return web.Pages{
		Name: "nowpage", Files: files, Routes: []web.Route{web.Get("", access.ReadStats, p.now)},
		Funcs: template.FuncMap{
			"reasonPill": reasonPill, "untilText": untilText, "failure": words.Failure, "waiting": waiting,
			"rates": (*recent.Attempts).Rates, "lateness": (*recent.Attempts).Lateness,
			"verdicts": (*recent.Attempts).Verdicts,
		},
	}
}

// now is the data of the page.
type now struct {
	*state

	Lead  lead
	Start *start // what to do on a server without jobs; nil: there are some
	Cards []card
	Lanes []*client.TroubledLane
	// LanesNote says what the table of lanes lacks.
	LanesNote string
	Paused    []pause
	Carrier   carrier
}

// now serves the page.
func (p *pages) now(v *web.Visit) (web.Answer, error) {
	s, err := p.read(v)
	if err != nil {
		return nil, err
	}
	data := &now{
		state: s, Lead: s.lead(), Cards: s.cards(), Lanes: s.lanes(),
		LanesNote: s.lanesNote(), Paused: s.pauses(), Carrier: s.carrier(),
	}
	if s.isFresh() && s.fault == "" {
		data.Start = newStart(v)
	}
	return &web.Page{View: "now", Reload: true, Title: "Now", Section: "now", Data: data}, nil
}
