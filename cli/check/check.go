// Package check compares measures of a server with limits, and writes the result as plugins of monitoring do.
package check

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ringback/ringback/job/units"
)

// State is the result of a check, and the exit code of a plugin.
type State int

// The states.
const (
	OK State = iota
	Warning
	Critical
	Unknown
)

func (s State) String() string { return []string{"OK", "WARNING", "CRITICAL", "UNKNOWN"}[s] }

// Line is the line that a plugin prints.
func Line(s State, text string) string { return fmt.Sprintf("RINGBACK %s - %s", s, text) }

// Measure is a value with its limits.
type Measure struct {
	Name   string
	Unit   string // s: the limits are durations; empty: numbers
	Limits string // WARN,CRIT; empty: none
	Value  float64
	Shown  string // the value for people
}

// Judge compares measures with their limits. The text has the measures, those beyond a limit first, and their
// performance data.
func Judge(measures []Measure) (state State, text string) {
	var bad, good, data []string
	for _, m := range measures {
		is, datum, err := m.judge()
		if err != nil {
			return Unknown, err.Error()
		}
		data = append(data, datum)
		state = max(state, is)
		if is == OK {
			good = append(good, m.Name+" "+m.Shown)
		} else {
			bad = append(bad, fmt.Sprintf("%s %s (%s)", m.Name, m.Shown, is))
		}
	}
	return state, strings.Join(append(bad, good...), ", ") + " | " + strings.Join(data, " ")
}

// judge compares a measure with its limits, and returns its performance data.
func (m *Measure) judge() (state State, datum string, err error) {
	datum = fmt.Sprintf("%s=%v%s", m.Name, m.Value, m.Unit)
	if m.Limits == "" {
		return OK, datum, nil
	}
	warn, crit, two := strings.Cut(m.Limits, ",")
	if !two {
		crit = warn
	}
	var limits [2]float64
	for i, text := range []string{warn, crit} {
		if limits[i], err = m.limit(strings.TrimSpace(text)); err != nil {
			return 0, "", fmt.Errorf("--%s: %q is not a limit: use WARN,CRIT",
				strings.ReplaceAll(strings.TrimSuffix(m.Name, "_open"), "_", "-"), m.Limits)
		}
	}
	datum += fmt.Sprintf(";%v;%v", limits[0], limits[1])
	switch {
	case m.Value >= limits[1]:
		return Critical, datum, nil
	case m.Value >= limits[0]:
		return Warning, datum, nil
	}
	return OK, datum, nil
}

func (m *Measure) limit(text string) (float64, error) {
	if m.Unit == "" {
		return strconv.ParseFloat(text, 64)
	}
	d, err := units.ParseDuration(text)
	return d.Seconds(), err
}
