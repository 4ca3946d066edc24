package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
)

// checkCommand is ringback check.
type checkCommand struct {
	// Only this topic. Default: all together.
	Topic string `placeholder:"TOPIC"`
	// How long the oldest job may have been due: 1m,10m.
	OldestDue string `placeholder:"WARN,CRIT"`
	// Numbers of dead jobs from which on it warns and is critical: 1,100.
	Dead string `placeholder:"WARN,CRIT"`
	// Count only jobs that died within this time. Default: all that are kept.
	DeadSince duration `placeholder:"DURATION"`
	// Numbers of open breakers: 1,10.
	Breakers string `placeholder:"WARN,CRIT"`
	// Shares of failed attempts of the receiver that fails most: 50%,90%.
	Failing string `placeholder:"WARN,CRIT"`
	// Numbers of unfinished jobs: 10000,100000.
	Pending string `placeholder:"WARN,CRIT"`
	// Longest duration of the check (default 10s).
	Timeout duration `default:"10s" placeholder:"DURATION"`
	connection
}

// setDefaults sets the limits of a check without any.
func (c *checkCommand) setDefaults() {
	if c.OldestDue+c.Dead+c.Breakers+c.Failing+c.Pending != "" {
		return
	}
	c.OldestDue, c.Dead, c.Breakers, c.Failing = "1m,10m", "1,100", "1,10", "50%,90%"
	c.DeadSince.Duration = cmp.Or(c.DeadSince.Duration, time.Hour)
}

// RunCommand prints one line, as monitoring plugins do, and exits with its state.
func (c *checkCommand) RunCommand(ctx context.Context, e *Environment) error {
	c.setDefaults()
	state, text := c.check(ctx, e)
	if _, err := fmt.Fprintln(e.Stdout, CheckLine(state, text)); err != nil {
		return err
	}
	if state == CheckOK {
		return nil
	}
	return &ExitError{Code: int(state)}
}

func (c *checkCommand) check(ctx context.Context, e *Environment) (CheckState, string) {
	s, err := c.ProvideSession(e)
	if err != nil {
		return CheckUnknown, output.Printable(err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout.Duration)
	defer cancel()
	if _, err := s.do(ctx, &apiRequest{Method: http.MethodGet, Path: "/readyz"}); err != nil {
		return CheckCritical, "not ready: " + output.Printable(FirstLine(err))
	}
	measures, err := c.measure(ctx, s)
	if err != nil {
		return CheckUnknown, output.Printable(FirstLine(err))
	}
	return judgeMeasures(measures)
}

// measure reads the values.
func (c *checkCommand) measure(ctx context.Context, s *session) ([]measure, error) {
	t, err := s.totals(ctx, statsPath(c.Topic), nil)
	if err != nil {
		return nil, err
	}
	if c.DeadSince.Duration > 0 {
		if t.Dead, err = c.deadSince(ctx, s); err != nil {
			return nil, err
		}
	}
	late, shown := time.Duration(0), "0s"
	if !t.OldestDueAt.IsZero() && t.OldestDueAt.Before(time.Now()) {
		late = time.Since(t.OldestDueAt)
		shown = output.Span(late)
	}
	number := func(name, limits string, n int64) measure {
		return measure{Name: name, Limits: limits, Value: float64(n), Shown: words.Number(n)}
	}
	measures := []measure{
		{Name: "oldest_due", Unit: "s", Limits: c.OldestDue, Value: float64(late / time.Second), Shown: shown},
		number("dead", c.Dead, t.Dead),
		number("breakers_open", c.Breakers, t.BreakersOpen),
		number("pending", c.Pending, t.Scheduled+t.Ready+t.Running),
	}
	if c.Failing == "" {
		return measures, nil
	}
	worst, shown, err := c.worstReceiver(ctx, s)
	return append(measures,
		measure{Name: "failing", Unit: "%", Limits: c.Failing, Value: worst, Shown: shown}), err
}

// worstReceiver returns the largest share of failed attempts of the receivers that fail, in percent, and whose it is.
func (c *checkCommand) worstReceiver(ctx context.Context, s *session) (worst float64, shown string, err error) {
	q := url.Values{"code": {"failing"}, "limit": {"500"}}
	if c.Topic != "" {
		q.Set("topic", c.Topic)
	}
	found, err := get[client.TroubledLanes](ctx, s, "a list of lanes", "/v1/lanes/troubled", q)
	if err != nil {
		return 0, "", err
	}
	shown = "0%"
	for _, l := range found.Items {
		if l.Health != nil && float64(l.Health.FailedPercent) > worst {
			worst = float64(l.Health.FailedPercent)
			shown = fmt.Sprintf("%v%% of lane %s of %s", worst, output.Printable(l.Lane), output.Printable(l.Topic))
		}
	}
	return worst, shown, nil
}

// deadSince counts the jobs that died within a time.
func (c *checkCommand) deadSince(ctx context.Context, s *session) (int64, error) {
	q := url.Values{
		"by":          {"topic"},
		"ended_after": {time.Now().Add(-c.DeadSince.Duration).UTC().Format(time.RFC3339Nano)},
	}
	if c.Topic != "" {
		q.Set("topic", c.Topic)
	}
	groups, err := get[struct {
		Items []client.JobGroup
		Exact *bool
	}](ctx, s, "a list of groups", "/v1/dead/groups", q)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, g := range groups.Items {
		sum += g.Count
	}
	if groups.Exact != nil && !*groups.Exact {
		return 0, fmt.Errorf("at least %s died since then, and there are too many to count: use a shorter "+
			"--dead-since, or a --topic", words.Count(sum, "job"))
	}
	return sum, nil
}
