package topicpages

import (
	"cmp"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/chart"
	"github.com/ringback/ringback/console/policyform"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// laneRows bounds each of the two lists that make a page of lanes.
const laneRows = 25

// laneList is a page of a topic's lanes: those with unfinished jobs, and those with settings.
type laneList struct {
	Rows  []laneRow
	Pager web.Pager
}

// flow says that the lanes of the page flow, where no breaker of the topic is open. Whether lanes of other pages are paused is unknown.
func (l laneList) flow() string {
	if l.Pager.First == "" && l.Pager.Next == "" {
		return "All flow:"
	}
	const others = "no breaker is open in the others:"
	switch n := int64(len(l.Rows)); n {
	case 0:
		return words.UpperFirst(others)
	case 1:
		return "The only lane of this page flows, and " + others
	default:
		return "The " + words.Count(n, "lane") + " of this page flow, and " + others
	}
}

// laneRow is a lane in the list.
type laneRow struct {
	client.LaneCounts

	// Limit is how many attempts may run at a time.
	Limit int
	// HasSettings reports whether the lane has settings of its own.
	HasSettings bool
	Paused      bool
	PausedAt    time.Time
	PausedBy    string
	PauseNote   string
}

// Waiting is the number of jobs that wait, due or not.
func (r laneRow) Waiting() int64 { return r.Scheduled + r.Ready }

// Cooling returns when the lane's cooldown ends; zero: there is none.
func (r laneRow) Cooling(now time.Time) time.Time {
	if r.CooldownUntil.After(now) {
		return r.CooldownUntil
	}
	return time.Time{}
}

// CoolingFor returns how long the lane's cooldown lasts.
func (r laneRow) CoolingFor(now time.Time) string {
	return words.Duration(r.CooldownUntil.Sub(now).Round(time.Second))
}

// Gauge draws how many attempts run of those that may.
func (r laneRow) Gauge() template.HTML {
	return chart.Gauge(int(r.Running), r.Limit, "Attempts in flight")
}

// BreakerWord is the state of the breaker.
func (r laneRow) BreakerWord() string { return strings.ReplaceAll(r.Breaker, "_", " ") }

// newLaneList merges a page of counts with a page of settings, which begin at the same cursor. Where a list goes on, the page ends with
// its last lane.
func newLaneList(v *web.Visit, t *client.Topic, stats *client.TopicStats, settings *client.Page[client.Lane]) laneList {
	var next, last string
	cut := func(name, cursor string) {
		if cursor != "" && (next == "" || name < last) {
			next, last = cursor, name
		}
	}
	if n := len(stats.Items); n > 0 {
		cut(stats.Items[n-1].Lane, stats.NextCursor)
	}
	if n := len(settings.Items); n > 0 {
		cut(settings.Items[n-1].Name, settings.NextCursor)
	}
	rows := make(map[string]*laneRow)
	row := func(name string) *laneRow {
		if rows[name] == nil {
			rows[name] = &laneRow{LaneCounts: client.LaneCounts{Lane: name, Breaker: "closed"}, Limit: laneLimit(t, nil)}
		}
		return rows[name]
	}
	for _, counts := range stats.Items {
		row(counts.Lane).LaneCounts = counts
	}
	for i := range settings.Items {
		l := &settings.Items[i]
		r := row(l.Name)
		r.HasSettings, r.Paused, r.PausedAt, r.PausedBy, r.PauseNote = true, l.Paused, l.PausedAt, l.PausedBy, l.PauseNote
		r.Limit = laneLimit(t, l)
	}
	list := laneList{Pager: v.Pager(next)}
	for _, r := range rows {
		if next == "" || r.Lane <= last {
			list.Rows = append(list.Rows, *r)
		}
	}
	slices.SortFunc(list.Rows, func(a, b laneRow) int { return strings.Compare(a.Lane, b.Lane) })
	return list
}

// laneLimit returns how many attempts of a lane may run at a time. l is nil if the lane has no settings.
func laneLimit(t *client.Topic, l *client.Lane) int {
	if policyform.IsTrue(t.Ordered) || l != nil && policyform.IsTrue(l.Ordered) {
		return 1
	}
	if l == nil {
		return t.LaneConcurrency
	}
	return cmp.Or(l.LaneConcurrency, t.LaneConcurrency)
}
