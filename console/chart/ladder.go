package chart

import (
	"fmt"
	"html/template"
	"math"
	"time"

	"github.com/ringback/ringback/console/words"
)

const (
	ladderWidth, ladderHeight = 720, 92
	ladderAxis                = 36
	ladderLeft, ladderRight   = 14, ladderWidth - 60
	maxRungs                  = 20 // retries that are drawn
)

// Ladder returns the attempts of a job that all fail, on a logarithmic axis of the time after the first: each retry
// with its wait and its time, without what attempts take themselves. Retries beyond the last wait repeat that. At most
// 20 are drawn; a text says how many more there are. Labels are left out where they have no room.
func Ladder(waits []time.Duration, retries int, timeout time.Duration) template.HTML {
	if retries <= 0 {
		return paragraph(words.Sentence("One attempt, and no retries" + within(timeout)))
	}
	times, drawn := schedule(waits, min(retries, maxRungs)), min(retries, maxRungs)
	last := times[drawn]
	more := ""
	if retries > drawn {
		last = saturatingAdd(last, lastTime(waits, drawn, retries))
		more = fmt.Sprintf("… %s more, last after %s", words.Number(int64(retries-drawn)), words.Duration(last))
	}
	said := make([]string, 0, drawn)
	for i := 1; i <= drawn; i++ {
		said = append(said, "+"+words.Duration(times[i]))
	}
	summary := words.Count(int64(retries), "retry") + ": " + joinWithin(said, 400)
	if more != "" {
		summary += "; " + more
	}
	d := newDrawing("ladder", ladderWidth, ladderHeight, title("", summary+within(timeout)))
	d.path("c-axis", fmt.Sprintf("M%d %dH%d", ladderLeft, ladderAxis, ladderRight))

	x := ladderScale(times)
	var dots drawing
	for i := range drawn {
		dots.add("M", number(x[i]), " ", number(ladderAxis), "h0")
	}
	d.dots("c-again", 8, dots.b.String())
	if more == "" {
		d.dots("c-dead", 8, "M"+number(x[drawn])+" "+number(ladderAxis)+"h0")
	} else {
		d.dots("c-again", 8, "M"+number(x[drawn])+" "+number(ladderAxis)+"h0")
	}
	d.waits(times, x)
	d.times(times, x)
	d.endNotes(more, timeout)
	return d.html()
}

// within says how long an attempt may take.
func within(timeout time.Duration) string {
	if timeout <= 0 {
		return ""
	}
	return "; each attempt takes up to " + words.Duration(timeout)
}

// schedule returns the times of the first attempt and of retries after the first.
func schedule(waits []time.Duration, retries int) []time.Duration {
	times := make([]time.Duration, retries+1)
	for i := range retries {
		times[i+1] = saturatingAdd(times[i], rung(waits, i))
	}
	return times
}

// rung returns the wait before the retry with an index; the last one repeats.
func rung(waits []time.Duration, i int) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	return max(waits[min(i, len(waits)-1)], 0)
}

// lastTime returns the time between two retries.
func lastTime(waits []time.Duration, from, to int) (sum time.Duration) {
	for ; from < to && from < len(waits); from++ {
		sum = saturatingAdd(sum, rung(waits, from))
	}
	wait := rung(waits, from)
	if wait > 0 && int64(to-from) > int64(math.MaxInt64-sum)/int64(wait) {
		return math.MaxInt64
	}
	return sum + time.Duration(to-from)*wait
}

func saturatingAdd(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// ladderScale returns the places of times on an axis that is logarithmic in units of the shortest wait, so that it has
// a 0.
func ladderScale(times []time.Duration) []float64 {
	unit := time.Duration(0)
	for i := 1; i < len(times); i++ {
		if wait := times[i] - times[i-1]; wait > 0 && (unit == 0 || wait < unit) {
			unit = wait
		}
	}
	x := make([]float64, len(times))
	for i := range x {
		share := float64(i) / float64(len(times)-1) // without a wait: in order
		if unit > 0 {
			share = math.Log1p(float64(times[i])/float64(unit)) / math.Log1p(float64(times[len(times)-1])/float64(unit))
		}
		x[i] = ladderLeft + share*(ladderRight-ladderLeft)
	}
	return x
}

// waits writes the waits above the axis, between their attempts.
func (d *drawing) waits(times []time.Duration, x []float64) {
	d.group("c-muted", "middle")
	for i := 1; i < len(times); i++ {
		wait := words.Duration(times[i] - times[i-1])
		if label := text((x[i-1]+x[i])/2, ladderAxis-10, wait); x[i]-x[i-1] >= widthOf(wait)+2 &&
			d.room(len(label)+1200) {
			d.add(label)
		}
	}
	d.endGroup()
}

// times writes the times below the axis, in two rows: the last one first, which matters most, then the others in order.
func (d *drawing) times(times []time.Duration, x []float64) {
	var rows [2]spans
	last := len(times) - 1
	d.group("c-label", "middle")
	for n := range times {
		i := (n + last) % len(times)
		label := "+" + words.Duration(times[i])
		if i == 0 {
			label = "first"
		}
		half := widthOf(label) / 2
		center := max(x[i], half)
		for row := range rows {
			y := float64(ladderAxis + 20 + row*lineHeight)
			if element := text(center, y, label); d.room(len(element)+300) &&
				rows[row].take(center-half, center+half, 3) {
				d.add(element)
				break
			}
		}
	}
	d.endGroup()
}

// endNotes writes how many retries are not drawn, and the timeout.
func (d *drawing) endNotes(more string, timeout time.Duration) {
	const y = ladderHeight - 6
	if timeout > 0 {
		d.add(`<g class="c-muted">`, text(2, y, "each attempt takes up to "+words.Duration(timeout)), `</g>`)
	}
	if more != "" {
		d.group("c-text", "end")
		d.add(text(ladderWidth-4, y, more))
		d.endGroup()
	}
}
