package topicpages

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
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

// isWhole reports whether the page has all lanes.
func (l laneList) isWhole() bool { return l.Pager.First == "" && l.Pager.Next == "" }

// holds returns clauses about what holds jobs back, and how bad that is. breakers is the number of those in all lanes
// of the topic that are open or half open.
func (l laneList) holds(breakers int64, now time.Time) (class string, clauses []string) {
	class = "warn"
	if text := l.breakers(breakers); text != "" {
		class, clauses = "bad", append(clauses, text)
	}
	var paused, cooling []string
	var behind int64
	until := ""
	for _, r := range l.Rows {
		switch end := r.cooling(now); {
		case r.Waiting() == 0:
		case r.Settings.Paused:
			paused, behind = append(paused, r.Lane), behind+r.Waiting()
		case !end.IsZero() && r.Breaker == "closed":
			cooling = append(cooling, r.Lane)
			until = " until " + words.When(end, now, nil) + " (" + words.In(end, now) + ")"
		}
	}
	if len(paused) > 0 {
		clauses = append(clauses, nameLanes(paused, " is paused", " are paused")+" with "+words.Count(behind, "job"))
	}
	if len(cooling) > 0 {
		clauses = append(clauses, nameLanes(cooling, " has a cooldown"+until, " have cooldowns"))
	}
	return class, clauses
}

// nameLanes names lanes, with what is said of one or of several.
func nameLanes(names []string, one, many string) string {
	if len(names) == 1 {
		return "lane " + names[0] + one
	}
	return "lanes " + words.List(names) + many
}

// breakers says how many breakers are not closed, and at which lanes; empty: none that holds jobs back. all is the
// number in all lanes of the topic. A page that is whole has those of all lanes with unfinished jobs.
func (l laneList) breakers(all int64) string {
	var names []string
	half := 0
	for _, r := range l.Rows {
		switch r.Breaker {
		case "closed":
			continue
		case "half_open":
			half++
		}
		names = append(names, r.Lane)
	}
	known, n := int64(len(names)), int64(len(names))
	if !l.isWhole() {
		n = max(n, all)
	}
	state := " open or half open"
	switch {
	case n == 0:
		return ""
	case n > known:
	case half == 0:
		state = " open"
	case half == len(names):
		state = " half open"
	}
	text := words.CountVerb(n, "breaker", "is", "are") + state
	switch {
	case known == n:
		text += ", at " + words.List(names)
	case known > 0:
		text += ", among them at " + words.List(names)
	}
	return text
}

// laneRow is a lane in the list.
type laneRow struct {
	client.LaneCounts

	// Settings are its own; zero: it has none.
	Settings *client.Lane
	// Limit is how many attempts may run at a time.
	Limit int
}

// hasSettings reports whether settings of the lane are stored.
func (r laneRow) hasSettings() bool { return r.Settings.Revision != 0 }

// Waiting is the number of jobs that wait, due or not.
func (r laneRow) Waiting() int64 { return r.Scheduled + r.Ready }

// cooling returns when the lane's cooldown ends; zero: there is none.
func (r laneRow) cooling(now time.Time) time.Time {
	if r.CooldownUntil.After(now) {
		return r.CooldownUntil
	}
	return time.Time{}
}

// coolingFor returns how long the lane's cooldown lasts.
func (r laneRow) coolingFor(now time.Time) string {
	return words.Duration(r.CooldownUntil.Sub(now).Round(time.Second))
}

// ofLimit returns the lane's limit of attempts in flight, for display after their number; empty without a topic.
func (r laneRow) ofLimit() string {
	if r.Limit <= 0 {
		return ""
	}
	return "of " + words.Number(int64(r.Limit))
}

// breakerWord is the state of the breaker.
func (r laneRow) breakerWord() string { return strings.ReplaceAll(r.Breaker, "_", " ") }

// newLaneList merges a page of counts with a page of settings, which begin at the same cursor. Where a list goes on,
// the page ends with its last lane.
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
			rows[name] = &laneRow{client.LaneCounts{Lane: name, Breaker: "closed"}, new(client.Lane), 0}
		}
		return rows[name]
	}
	for _, counts := range stats.Items {
		row(counts.Lane).LaneCounts = counts
	}
	for i := range settings.Items {
		row(settings.Items[i].Name).Settings = &settings.Items[i]
	}
	list := laneList{Pager: v.Pager(next)}
	for _, r := range rows {
		if r.Limit = laneLimit(t, r.Settings); next == "" || r.Lane <= last {
			list.Rows = append(list.Rows, *r)
		}
	}
	slices.SortFunc(list.Rows, func(a, b laneRow) int { return strings.Compare(a.Lane, b.Lane) })
	return list
}

// laneLimit returns how many attempts of a lane may run at a time.
func laneLimit(t *client.Topic, l *client.Lane) int {
	isTrue := func(b *bool) bool { return b != nil && *b }
	if isTrue(t.Ordered) || isTrue(l.Ordered) {
		return 1
	}
	return cmp.Or(l.LaneConcurrency, t.LaneConcurrency)
}
