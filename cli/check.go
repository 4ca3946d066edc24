package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/cli/request"
)

// Exit codes of ringback check, which are those of monitoring plugins.
const (
	checkOK = iota
	checkWarning
	checkCritical
	checkUnknown
)

// ExitCheckUnknown is the exit code of ringback check if its command line is not valid: 2 would be an outage.
const ExitCheckUnknown = checkUnknown

var checkNames = []string{"OK", "WARNING", "CRITICAL", "UNKNOWN"}

// checkCommand is ringback check.
type checkCommand struct {
	Topic     string        `placeholder:"TOPIC" help:"Only this topic. Default: all together."`
	OldestDue string        `placeholder:"WARN,CRIT" help:"How long the oldest job may have been due: 1m,10m."`
	Dead      string        `placeholder:"WARN,CRIT" help:"Numbers of dead jobs from which on it warns and is critical: 1,100."`
	DeadSince time.Duration `placeholder:"DURATION" help:"Count only jobs that died within this time. Default: all that are kept."`
	Breakers  string        `placeholder:"WARN,CRIT" help:"Numbers of open breakers: 1,10."`
	Pending   string        `placeholder:"WARN,CRIT" help:"Numbers of unfinished jobs: 10000,100000."`
	Timeout   time.Duration `default:"10s" placeholder:"DURATION" help:"Longest duration of the check (default 10s)."`
	connection
}

// measure is a value with its limits.
type measure struct {
	name, unit string
	limits     string
	value      float64
	shown      string
}

// Run prints one line, as monitoring plugins do, and exits with its state.
func (c *checkCommand) Run(ctx context.Context, e *Environment) error {
	state, text := c.check(ctx, e)
	if _, err := fmt.Fprintf(e.Stdout, "RINGBACK %s - %s\n", checkNames[state], text); err != nil {
		return err
	}
	if state == checkOK {
		return nil
	}
	return &codeError{code: state}
}

func (c *checkCommand) check(ctx context.Context, e *Environment) (state int, text string) {
	s, err := c.open(e)
	if err != nil {
		return checkUnknown, output.Printable(err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if _, err := s.do(ctx, &request.Request{Method: http.MethodGet, Path: "/readyz"}); err != nil {
		return checkCritical, "not ready: " + output.Printable(firstLine(err))
	}
	measures, err := c.measure(ctx, s)
	if err != nil {
		return checkUnknown, output.Printable(firstLine(err))
	}
	var bad, good, data []string
	for _, m := range measures {
		is, datum, err := m.judge()
		if err != nil {
			return checkUnknown, err.Error()
		}
		data = append(data, datum)
		state = max(state, is)
		if is == checkOK {
			good = append(good, m.name+" "+m.shown)
		} else {
			bad = append(bad, fmt.Sprintf("%s %s (%s)", m.name, m.shown, checkNames[is]))
		}
	}
	return state, strings.Join(append(bad, good...), ", ") + " | " + strings.Join(data, " ")
}

// measure reads the values.
func (c *checkCommand) measure(ctx context.Context, s *session) ([]measure, error) {
	path := "/v1/stats"
	if c.Topic != "" {
		path = "/v1/topics/" + url.PathEscape(c.Topic) + "/stats"
	}
	answer, err := s.do(ctx, &request.Request{Method: http.MethodGet, Path: path, Query: url.Values{"limit": {"1"}}})
	if err != nil {
		return nil, err
	}
	t, err := readCounts(answer)
	if err != nil {
		return nil, err
	}
	if c.DeadSince > 0 {
		if t.Dead, err = c.deadSince(ctx, s); err != nil {
			return nil, err
		}
	}
	var late time.Duration
	if t.OldestDueAt != nil {
		late = max(time.Since(*t.OldestDueAt), 0)
	}
	number := func(name, limits string, n int64) measure { return measure{name, "", limits, float64(n), grouped(n)} }
	return []measure{
		{"oldest_due", "s", c.OldestDue, float64(late / time.Second), output.Span(late)},
		number("dead", c.Dead, t.Dead),
		number("breakers_open", c.Breakers, t.BreakersOpen),
		number("pending", c.Pending, t.Scheduled+t.Ready+t.Running),
	}, nil
}

// deadSince counts the jobs that died within a time.
func (c *checkCommand) deadSince(ctx context.Context, s *session) (int64, error) {
	q := url.Values{"by": {"topic"}, "ended_after": {time.Now().Add(-c.DeadSince).UTC().Format(time.RFC3339Nano)}}
	if c.Topic != "" {
		q.Set("topic", c.Topic)
	}
	answer, err := s.do(ctx, &request.Request{Method: http.MethodGet, Path: "/v1/dead/groups", Query: q})
	if err != nil {
		return 0, err
	}
	var groups struct{ Items []struct{ Count int64 } }
	if err := json.Unmarshal(answer, &groups); err != nil {
		return 0, err
	}
	var sum int64
	for _, g := range groups.Items {
		sum += g.Count
	}
	return sum, nil
}

// judge compares a measure with its limits, and returns its performance data.
func (m *measure) judge() (state int, datum string, err error) {
	datum = fmt.Sprintf("%s=%v%s", m.name, m.value, m.unit)
	if m.limits == "" {
		return checkOK, datum, nil
	}
	warn, crit, two := strings.Cut(m.limits, ",")
	if !two {
		crit = warn
	}
	var limits [2]float64
	for i, text := range []string{warn, crit} {
		if limits[i], err = m.limit(strings.TrimSpace(text)); err != nil {
			return 0, "", fmt.Errorf("--%s: %q is not a limit: use WARN,CRIT", strings.ReplaceAll(strings.TrimSuffix(m.name, "_open"), "_", "-"), m.limits)
		}
	}
	datum += fmt.Sprintf(";%v;%v", limits[0], limits[1])
	switch {
	case m.value >= limits[1]:
		return checkCritical, datum, nil
	case m.value >= limits[0]:
		return checkWarning, datum, nil
	}
	return checkOK, datum, nil
}

func (m *measure) limit(text string) (float64, error) {
	if m.unit == "" {
		return strconv.ParseFloat(text, 64)
	}
	d, err := parseDuration(text)
	return d.Seconds(), err
}
