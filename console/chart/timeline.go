package chart

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/console/words"
)

// A Moment is something that happened to a job, or will.
type Moment struct {
	At    time.Time
	Label string // "registered", "attempt 2: 503", "expires"
	Class string // of Colors: c-registered, a verdict's, c-next, c-expiry
}

const (
	timelineWidth, timelineHeight = 720, 112 // with all rows
	timelineAxis                  = 34
	timelineLeft, timelineRight   = 10, timelineWidth - 164 // the labels of the last moments need the rest
	timelineRows                  = 5
	momentLabel                   = 156 // the width of a label
	maxMoments                    = 40
	maxMoment                     = 32 // characters of a label
	keptAtFirst                   = maxMoments / 4
	gapUnit                       = 100 * time.Millisecond
)

// mark is a moment at its place.
type mark struct {
	Moment
	x   float64
	now bool
}

// Timeline returns the life of a job on an axis, in the order of time, with a mark for now. The distance of two moments
// grows with the logarithm of the time between them. Times in the title are in the location of now; a zero now has no
// mark. Of more than 40 moments the middle ones are left out. A label stands to the right of its line; those that have
// no room are left out, the first, the last and that of now at last.
func Timeline(events []Moment, now time.Time) template.HTML {
	if len(events) == 0 {
		return paragraph("Nothing has happened yet.")
	}
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b Moment) int { return a.At.Compare(b.At) })
	summary := timelineText(events, now)
	hidden := max(len(events)-maxMoments, 0)
	if hidden > 0 {
		events = slices.Delete(events, keptAtFirst, keptAtFirst+hidden)
	}
	marks := placeMarks(events, now)
	d := newDrawing("timeline", timelineWidth, timelineHeight, summary)
	d.timelineAxis(marks)
	d.timelineDots(marks)
	unused := timelineRows - d.timelineLabels(marks)
	d.timelineGaps(marks, hidden)
	return withHeight(d.html(), timelineHeight, timelineHeight-unused*lineHeight)
}

// withHeight returns a picture with another height, which is known only after it is drawn.
func withHeight(picture template.HTML, from, to int) template.HTML {
	size := func(height int) string {
		return fmt.Sprintf(`viewBox="0 0 %d %d" width="%d" height="%d"`, timelineWidth, height, timelineWidth, height)
	}
	//nolint:gosec // it was escaped when it was drawn
	return template.HTML(strings.Replace(string(picture), size(from), size(to), 1))
}

// timelineText says what happened when, and what will.
func timelineText(events []Moment, now time.Time) string {
	loc := now.Location()
	parts := make([]string, len(events))
	for i, e := range events {
		label := cut(e.Label, maxMoment)
		if i == 0 {
			parts[i] = label + " " + words.DateTime(e.At, loc)
			continue
		}
		parts[i] = label + " +" + words.Duration(e.At.Sub(events[i-1].At))
	}
	text := joinWithin(parts, 650)
	if !now.IsZero() {
		text += "; now " + words.When(now, events[0].At, loc)
	}
	return words.Sentence(text)
}

// placeMarks returns the moments and now at their places, from left to right. Events of the same time are a little
// apart.
func placeMarks(events []Moment, now time.Time) []mark {
	marks := make([]mark, 0, len(events)+1)
	for _, e := range events {
		if !now.IsZero() && e.At.After(now) &&
			(len(marks) == 0 || !slices.ContainsFunc(marks, func(m mark) bool { return m.now })) {
			marks = append(marks, mark{Moment: Moment{At: now, Label: "now"}, now: true})
		}
		marks = append(marks, mark{Moment: e})
	}
	if !now.IsZero() && !slices.ContainsFunc(marks, func(m mark) bool { return m.now }) {
		marks = append(marks, mark{Moment: Moment{At: now, Label: "now"}, now: true})
	}
	weights := make([]float64, len(marks))
	sum := 0.0
	for i := 1; i < len(marks); i++ {
		gap := float64(marks[i].At.Sub(marks[i-1].At)) / float64(gapUnit)
		sum += 0.2 + math.Log10(1+max(gap, 0))
		weights[i] = sum
	}
	for i := range marks {
		marks[i].x = timelineLeft
		if sum > 0 {
			marks[i].x += weights[i] / sum * (timelineRight - timelineLeft)
		}
		marks[i].x = math.Round(marks[i].x)
	}
	return marks
}

// timelineAxis draws the axis: a line up to now, another one after it.
func (d *drawing) timelineAxis(marks []mark) {
	past, end := marks[0].x, marks[len(marks)-1].x
	hasNow := false
	for _, m := range marks {
		if m.now {
			past, hasNow = m.x, true
		}
	}
	if !hasNow {
		past = end
	}
	y := number(timelineAxis)
	if past > marks[0].x {
		d.path("c-axis", "M"+number(marks[0].x)+" "+y+"H"+number(past))
	}
	if end > past {
		d.path("c-future", "M"+number(past)+" "+y+"H"+number(end))
	}
	if hasNow {
		d.path("c-mark c-now", fmt.Sprintf("M%s %dv24", number(past), timelineAxis-12))
	}
}

// timelineDots draws a dot for each moment, those of a class together.
func (d *drawing) timelineDots(marks []mark) {
	centres := make(map[string]string)
	var classes []string
	for _, m := range marks {
		if m.now {
			continue
		}
		class := known(m.Class)
		if centres[class] == "" {
			classes = append(classes, class)
		}
		centres[class] += "M" + number(m.x) + " " + number(timelineAxis) + "h0"
	}
	for _, class := range classes {
		if d.room(len(centres[class]) + 200) {
			d.dots(class, 9, centres[class])
		}
	}
}

// timelineLabels writes the labels under the axis, and returns the number of rows that they use. Each has a line down
// from its moment and stands to the right of that.
//
// A label may extend below the moments after it only in a lower row than theirs, so that neither labels nor lines
// cross.
func (d *drawing) timelineLabels(marks []mark) (used int) {
	const reserved = 550 // for the lines, the note about what is left out, and the ends of groups
	labels := make([]string, len(marks))
	for i, m := range marks {
		labels[i] = cutToWidth(cut(m.Label, maxMoment), momentLabel)
	}
	var rows []int // of the labels that are written; -1: not written
	chosen := make([]bool, len(marks))
	size := 0
	for _, i := range byImportance(marks) {
		chosen[i] = true
		bytes := len(text(marks[i].x, timelineHeight, labels[i])) + len(` class="c-now"`)
		tried := staircase(marks, labels, chosen)
		if strings.TrimSpace(labels[i]) == "" || tried == nil || size+bytes > 1500 || !d.room(size+bytes+reserved) {
			chosen[i] = false
			continue
		}
		rows, size = tried, size+bytes
	}
	var lines, all drawing
	for i, m := range marks {
		if !chosen[i] {
			continue
		}
		used = max(used, rows[i]+1)
		y := float64(timelineAxis + 18 + rows[i]*lineHeight)
		lines.add("M", number(m.x), " ", number(timelineAxis+6), "V", number(y))
		element := text(m.x+4, y, labels[i])
		if m.now {
			element = strings.Replace(element, "<text ", `<text class="c-now" `, 1)
		}
		all.add(element)
	}
	d.path("c-grid", lines.b.String())
	d.add(`<g class="c-text">`, all.b.String(), `</g>`)
	return used
}

// byImportance returns the order in which labels get room: the first, the last, now, then the newest.
func byImportance(marks []mark) []int {
	order := []int{0, len(marks) - 1}
	for i, m := range marks {
		if m.now {
			order = append(order, i)
		}
	}
	for i := range slices.Backward(marks) {
		order = append(order, i)
	}
	var once []int
	for _, i := range order {
		if !slices.Contains(once, i) {
			once = append(once, i)
		}
	}
	return once
}

// staircase returns the rows of the chosen labels; nil: they have no room.
func staircase(marks []mark, labels []string, chosen []bool) []int {
	rows := make([]int, len(marks))
	for i := len(marks) - 1; i >= 0; i-- {
		if !chosen[i] {
			continue
		}
		end := marks[i].x + 4 + widthOf(labels[i]) + 4
		for j := i + 1; j < len(marks) && marks[j].x < end; j++ {
			if chosen[j] {
				rows[i] = max(rows[i], rows[j]+1)
			}
		}
		if rows[i] >= timelineRows {
			return nil
		}
	}
	return rows
}

// timelineGaps writes the time between moments above the axis where there is room, and how many moments are left out
// where they would be.
func (d *drawing) timelineGaps(marks []mark, hidden int) {
	var taken spans
	const y = timelineAxis - 14
	d.group("c-muted", "middle")
	if hidden > 0 {
		note := "… " + words.Number(int64(hidden)) + " not drawn"
		half := widthOf(note) / 2
		center := max(timelineBreak(marks), half)
		taken.take(center-half, center+half, 0)
		d.add(text(center, y, note))
	}
	for i := 1; i < len(marks); i++ {
		gap := words.Duration(marks[i].At.Sub(marks[i-1].At))
		half, center := widthOf(gap)/2, (marks[i-1].x+marks[i].x)/2
		element := text(center, y, gap)
		if marks[i].x-marks[i-1].x >= 2*half+4 && d.room(len(element)+len("</g>")) &&
			taken.take(center-half, center+half, 4) {
			d.add(element)
		}
	}
	d.endGroup()
}

// timelineBreak returns the place of the moments that are left out.
func timelineBreak(marks []mark) float64 {
	drawn := 0
	for i, m := range marks {
		if m.now {
			continue
		}
		if drawn == keptAtFirst {
			return (marks[i-1].x + m.x) / 2
		}
		drawn++
	}
	return marks[len(marks)-1].x
}
