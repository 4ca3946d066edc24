// This part of the package shows work on many jobs.

package output

import (
	"fmt"
	"strings"
	"time"
)

// WorkProgress is what is shown of work.
type WorkProgress struct {
	ID, Action, State     string
	Total                 *int64
	Matched               int64
	Exact                 bool
	Done, Failed, Skipped int64
	ETA                   *time.Time `json:"eta_at"`
	CreatedAt             time.Time  `json:"created_at"`
	Failures              []struct{ ID, Reason string }
}

// Summary says what became of work.
func (w *WorkProgress) Summary() string {
	return fmt.Sprintf("%s %s is %s: %s done, %s failed, %s skipped", w.Action, w.ID, w.State, Number(w.Done),
		Number(w.Failed), Number(w.Skipped))
}

// barWidth is the length of a progress bar in characters.
const barWidth = 30

// Bar is the progress on one line.
func (w *WorkProgress) Bar(now time.Time) string {
	treated := w.Done + w.Failed + w.Skipped
	text := fmt.Sprintf("%s %s", w.Action, Number(treated))
	if w.Total != nil && *w.Total > 0 {
		full := int(min(treated, *w.Total) * barWidth / *w.Total)
		text = fmt.Sprintf("%s [%s%s] %s of %s", w.Action, strings.Repeat("#", full),
			strings.Repeat("-", barWidth-full), Number(treated), Number(*w.Total))
	}
	if w.Failed > 0 {
		text += fmt.Sprintf(", %s failed", Number(w.Failed))
	}
	if w.ETA != nil && w.ETA.After(now) {
		text += ", ends in " + Span(w.ETA.Sub(now))
	}
	return text
}
