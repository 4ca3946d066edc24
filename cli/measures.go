// This part of the package compares measures of a server with limits, and writes the result as plugins of monitoring
// do.

package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ringback/ringback/job/units"
)

// CheckState is the result of a check, and the exit code of a plugin.
type CheckState int

// The states.
const (
	CheckOK CheckState = iota
	CheckWarning
	CheckCritical
	CheckUnknown
)

func (s CheckState) String() string { return []string{"OK", "WARNING", "CRITICAL", "UNKNOWN"}[s] }

// CheckLine is the line that a plugin prints.
func CheckLine(s CheckState, text string) string { return fmt.Sprintf("RINGBACK %s - %s", s, text) }

// measure is a value with its limits.
type measure struct {
	Name   string
	Unit   string // s: the limits are durations; %: percentages; empty: numbers
	Limits string // WARN,CRIT; empty: none
	Value  float64
	Shown  string // the value for people
}

// judgeMeasures compares measures with their limits. The text has the measures, those beyond a limit first, and their
// performance data.
func judgeMeasures(measures []measure) (state CheckState, text string) {
	var bad, good, data []string
	for _, m := range measures {
		is, datum, err := m.judge()
		if err != nil {
			return CheckUnknown, err.Error()
		}
		data = append(data, datum)
		state = max(state, is)
		if is == CheckOK {
			good = append(good, m.Name+" "+m.Shown)
		} else {
			bad = append(bad, fmt.Sprintf("%s %s (%s)", m.Name, m.Shown, is))
		}
	}
	return state, strings.Join(append(bad, good...), ", ") + " | " + strings.Join(data, " ")
}

// judge compares a measure with its limits, and returns its performance data.
func (m *measure) judge() (state CheckState, datum string, err error) {
	datum = fmt.Sprintf("%s=%v%s", m.Name, m.Value, m.Unit)
	if m.Limits == "" {
		return CheckOK, datum, nil
	}
	warn, crit, two := strings.Cut(m.Limits, ",")
	if !two {
		crit = warn
	}
	warning, err := m.limit(warn)
	critical, err2 := m.limit(crit)
	if err != nil || err2 != nil {
		return 0, "", fmt.Errorf("--%s: %q is not a limit: use WARN,CRIT",
			strings.ReplaceAll(strings.TrimSuffix(m.Name, "_open"), "_", "-"), m.Limits)
	}
	if m.Value >= critical {
		state = CheckCritical
	} else if m.Value >= warning {
		state = CheckWarning
	}
	return state, datum + fmt.Sprintf(";%v;%v", warning, critical), nil
}

func (m *measure) limit(text string) (float64, error) {
	if text = strings.TrimSpace(text); m.Unit != "s" {
		return strconv.ParseFloat(strings.TrimSuffix(text, m.Unit), 64)
	}
	d, err := units.ParseDuration(text)
	return d.Seconds(), err
}
