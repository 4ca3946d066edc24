package settingspages

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/internal/doctor"
)

// inForceData is the data of the view settings-in-force.
type inForceData struct {
	Lead   string
	Known  bool
	Filter string
	Rows   []Setting
}

// settingsInForce lists the settings of the process whose name, value or source contains a text.
func (p *pages) settingsInForce(v *web.Visit) (web.Answer, error) {
	data := inForceData{Filter: v.Query("filter"), Known: len(p.inForce) > 0}
	text, set := strings.ToLower(data.Filter), int64(0)
	for _, s := range p.inForce {
		if s.From != "default" {
			set++
		}
		if strings.Contains(strings.ToLower(s.Name+"\n"+s.Value+"\n"+s.From), text) {
			data.Rows = append(data.Rows, s)
		}
	}
	switch all := int64(len(p.inForce)); {
	case !data.Known:
		data.Lead = "The settings of this process are not known: a program that contains Ringback has set them."
	case set == 0:
		data.Lead = "All settings of this process are defaults."
	default:
		data.Lead = words.Number(set) + " of " + words.Count(all, "setting") + " of this process are not defaults."
	}
	return &web.Page{View: "settings-in-force", Title: "Settings in " +
		"force", Section: section, Crumbs: crumbs(v), Data: data}, nil
}

const (
	// checkTime bounds the checks. They take at most 9 s.
	checkTime = 10 * time.Second
	// checksKept is how long the findings answer all who ask for checks.
	checksKept = time.Minute
)

// checker makes the checks of the process, one run at a time. Its zero value lacks check.
type checker struct {
	check func(context.Context) []doctor.Finding

	mu      sync.Mutex
	running chan struct{} // closed when the checks that run have ended; nil: none run
	last    findings
}

// findings are what checks found.
type findings struct {
	At  time.Time // when they ended; zero: never
	All []doctor.Finding
}

// latest returns what the last checks found.
func (c *checker) latest() findings {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// run makes the checks, unless they were made within checksKept, or waits for those that run. They go on when their
// reader leaves, for who asks next.
func (c *checker) run(ctx context.Context) error {
	c.mu.Lock()
	if !c.last.At.IsZero() && time.Since(c.last.At) < checksKept {
		c.mu.Unlock()
		return nil
	}
	if running := c.running; running != nil {
		c.mu.Unlock()
		select {
		case <-running:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	done := make(chan struct{})
	c.running = done
	c.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTime)
	defer cancel()
	var all []doctor.Finding
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.last, c.running = findings{At: time.Now(), All: all}, nil
		close(done)
	}()
	all = slices.Clone(c.check(ctx))
	slices.SortStableFunc(all, func(a, b doctor.Finding) int { return doctor.Compare(a.Level, b.Level) })
	return nil
}

// checksData is the data of the view settings-checks.
type checksData struct {
	Lead, Class string
	Can         bool
	At          time.Time
	// Again is when they can be made again; zero: now.
	Again time.Time
	Rows  []findingRow
}

// findingRow is a finding in words.
type findingRow struct {
	doctor.Finding

	Class string
}

// levelClasses are the classes of pills of levels.
var levelClasses = map[doctor.Level]string{
	doctor.Fault: "bad", doctor.Warn: "warn",
	doctor.Unknown: "plain", doctor.OK: "ok",
}

// findings shows what the last checks found. It makes none.
func (p *pages) findings(v *web.Visit) (web.Answer, error) {
	data := checksData{Can: p.checks != nil}
	if data.Can {
		last := p.checks.latest()
		data.At = last.At
		if again := last.At.Add(checksKept); again.After(v.Now) {
			data.Again = again
		}
		for _, f := range last.All {
			data.Rows = append(data.Rows, findingRow{f, levelClasses[f.Level]})
		}
	}
	data.Lead, data.Class = checksLead(data)
	return &web.Page{View: "settings-checks", Title: "Checks", Section: section, Crumbs: crumbs(v), Data: data}, nil
}

// checksLead says what was found in a sentence.
func checksLead(data checksData) (sentence, class string) {
	count := make(map[doctor.Level]int64)
	var worst []string
	for _, f := range data.Rows {
		count[f.Level]++
		if f.Level == doctor.Fault || len(worst) == 0 && f.Level == doctor.Warn {
			worst = append(worst, string(f.Check))
		}
	}
	switch {
	case !data.Can:
		return "This process cannot be checked here: run ringback doctor.", ""
	case data.At.IsZero():
		return "Nothing was checked yet since this process started: the checks take up to 10 seconds.", ""
	case count[doctor.Fault] > 0:
		return levelCounts(count) + ": " + words.List(worst) + ".", "bad"
	case count[doctor.Warn] > 0:
		return levelCounts(count) + ": " + words.List(worst) + ".", "warn"
	case count[doctor.Unknown] > 0:
		return levelCounts(count) + ", and " + okText(count) + ".", ""
	}
	return "Nothing is wrong: " + okText(count) + ".", "ok"
}

// okText counts what is ok: 24 checks are ok.
func okText(count map[doctor.Level]int64) string {
	n := count[doctor.OK]
	return words.CountVerb(n, "check", "is", "are") + " ok"
}

// levelCounts counts what is not ok: 1 fault, 2 warnings.
func levelCounts(count map[doctor.Level]int64) string {
	var parts []string
	for _, kind := range []struct {
		level doctor.Level
		noun  string
	}{{doctor.Fault, "fault"}, {doctor.Warn, "warning"}} {
		if n := count[kind.level]; n > 0 {
			parts = append(parts, words.Count(n, kind.noun))
		}
	}
	if n := count[doctor.Unknown]; n > 0 {
		parts = append(parts, words.Count(n, "check")+" without a result")
	}
	return strings.Join(parts, ", ")
}

// runChecks makes the checks, and leads to what they found.
func (p *pages) runChecks(v *web.Visit) (web.Answer, error) {
	to := v.Path("settings", "checks")
	if p.checks == nil || p.checks.run(v.Request.Context()) == nil {
		return &web.Redirect{To: to}, nil
	}
	return web.Warn(to, "The checks still run: open this page again in some seconds."), nil
}
