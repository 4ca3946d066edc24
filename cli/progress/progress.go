// Package progress shows work on many jobs.
package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/ringback/ringback/cli/output"
)

// Work is what is shown of work.
type Work struct {
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
func (w *Work) Summary() string {
	return fmt.Sprintf("%s %s is %s: %s done, %s failed, %s skipped", w.Action, w.ID, w.State, output.Number(w.Done),
		output.Number(w.Failed), output.Number(w.Skipped))
}

// barWidth is the length of a progress bar in characters.
const barWidth = 30

// Bar is the progress on one line.
func (w *Work) Bar(now time.Time) string {
	treated := w.Done + w.Failed + w.Skipped
	text := fmt.Sprintf("%s %s", w.Action, output.Number(treated))
	if w.Total != nil && *w.Total > 0 {
		full := int(min(treated, *w.Total) * barWidth / *w.Total)
		text = fmt.Sprintf("%s [%s%s] %s of %s", w.Action, strings.Repeat("#", full),
			strings.Repeat("-", barWidth-full), output.Number(treated), output.Number(*w.Total))
	}
	if w.Failed > 0 {
		text += fmt.Sprintf(", %s failed", output.Number(w.Failed))
	}
	if w.ETA != nil && w.ETA.After(now) {
		text += ", ends in " + output.Span(w.ETA.Sub(now))
	}
	return text
}
