package metrics_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/metrics"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
)

// delivered returns the end of a typical attempt.
func delivered(topic string) pool.AttemptEvent {
	return pool.AttemptEvent{
		Namespace: "default", Topic: topic, Verdict: policy.Verdict{Kind: policy.Delivered},
		Result: &policy.Result{Status: 200, Duration: 20 * time.Millisecond}, Late: 2 * time.Millisecond,
	}
}

func TestEnded_CountsByVerdictAndOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		verdict policy.Kind
		result  *policy.Result
		as      [2]string
	}{
		"delivered":             {policy.Delivered, &policy.Result{Status: 204}, [2]string{"delivered", "2xx"}},
		"not what was expected": {policy.Again, &policy.Result{Status: 200}, [2]string{"again", "2xx"}},
		"redirected":            {policy.Again, &policy.Result{Status: 302}, [2]string{"again", "3xx"}},
		"gone":                  {policy.Dead, &policy.Result{Status: 410}, [2]string{"dead", "4xx"}},
		"overloaded":            {policy.Again, &policy.Result{Status: 503}, [2]string{"again", "5xx"}},
		"an unknown status":     {policy.Again, &policy.Result{Status: 999}, [2]string{"again", "9xx"}},
		"no status at all":      {policy.Again, &policy.Result{}, [2]string{"again", "other"}},
		"a status too large":    {policy.Again, &policy.Result{Status: 1200}, [2]string{"again", "other"}},
		"refused": {
			policy.Again, &policy.Result{Class: policy.ClassRefused}, [2]string{"again", "refused"},
		},
		"half an answer": {
			policy.Again, &policy.Result{Status: 200, Class: policy.ClassTimeoutBody},
			[2]string{"again", "timeout_body"},
		},
		"a class to come":   {policy.Again, &policy.Result{Class: "quantum"}, [2]string{"again", "other"}},
		"expired":           {policy.Dead, nil, [2]string{"dead", "none"}},
		"given back":        {policy.Released, nil, [2]string{"released", "none"}},
		"a verdict to come": {policy.Released + 1, nil, [2]string{"none", "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := metrics.New(metrics.Options{})
			for range 3 {
				m.AttemptEnded(pool.AttemptEvent{
					Namespace: "default", Topic: "orders",
					Verdict: policy.Verdict{Kind: c.verdict}, Result: c.result,
				})
			}
			got := scrape(t, m)
			require.InDelta(t, 3, got.value(t, "ringback_attempts_total",
				"topic", "orders", "verdict", c.as[0], "outcome", c.as[1]), 0)
			require.InDelta(t, 3, got.sum("ringback_attempts_total"), 0, "and nowhere else")
		})
	}
}

// Every class of package policy has a label. A class missing in the list would count as "other".
func TestEnded_CountsEveryErrorClass(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../policy/result.go", nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var classes []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "ErrorClass" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			classes = append(classes, text)
		}
		return true
	})
	require.Greater(t, len(classes), 20)
	m := metrics.New(metrics.Options{})
	for _, class := range classes {
		m.AttemptEnded(pool.AttemptEvent{
			Namespace: "default", Topic: "t",
			Result: &policy.Result{Class: policy.ErrorClass(class), Status: 200},
		})
	}
	got := scrape(t, m)
	for _, class := range classes {
		if class != string(policy.ClassNone) {
			require.InDelta(t, 1, got.value(t, "ringback_attempts_total", "outcome", class), 0, class)
		}
	}
}

func TestEnded_ObservesLatenessAndDurationOfRequestsOnly(t *testing.T) {
	m := metrics.New(metrics.Options{})
	for _, result := range []*policy.Result{
		nil, // the job had expired
		{Class: policy.ClassBlocked, Duration: time.Microsecond},
		{Class: policy.ClassInvalid},
		{Class: policy.ClassNoURL},
		{Class: policy.ClassShutdown, Duration: time.Second},
		{Class: policy.ClassTimeoutDial, Duration: 10 * time.Second},
		{Status: 200, Duration: 30 * time.Millisecond},
	} {
		m.AttemptEnded(pool.AttemptEvent{Namespace: "default", Topic: "t", Result: result, Late: -time.Millisecond})
	}
	got := scrape(t, m)
	require.InDelta(t, 6, got.value(t, "ringback_lateness_seconds_count", "topic", "t"), 0)
	require.InDelta(t, 0, got.value(t, "ringback_lateness_seconds_sum"), 0, "none is early")
	require.InDelta(t, 2, got.value(t, "ringback_attempt_duration_seconds_count", "topic", "t"), 0)
	require.InDelta(t, 10.03, got.value(t, "ringback_attempt_duration_seconds_sum"), 1e-9)
}

func TestTopics_BeyondTheLimitShareASeries(t *testing.T) {
	const most, all = metrics.MaxTopics, 10_000
	m := metrics.New(metrics.Options{})
	var goroutines sync.WaitGroup
	for g := range 8 {
		goroutines.Go(func() {
			for i := range all {
				m.AttemptEnded(delivered(fmt.Sprintf("topic-%d", (i+g*most/8)%all)))
			}
		})
	}
	goroutines.Wait()
	m.AttemptEnded(delivered(""))
	m.AttemptEnded(delivered("\xff is no label"))
	m.AttemptEnded(delivered("a-name-that-is-longer-than-any-topic-may-be-named-by-any-client-at-all"))

	got := scrape(t, m)
	require.Len(t, got.all("ringback_attempts_total"), most+1)
	require.Len(t, got.all("ringback_lateness_seconds_count"), most+1)
	require.InDelta(t, 8*all+3, got.sum("ringback_attempts_total"), 0, "none is lost")
	require.InDelta(t, 8*(all-most)+3, got.value(t, "ringback_attempts_total", "topic", "_other"), 0)
}

func TestEnded_DoesNotAllocate(t *testing.T) {
	m := metrics.New(metrics.Options{})
	for i := range metrics.MaxTopics - 1 {
		m.AttemptEnded(delivered(fmt.Sprintf("topic-%d", i)))
	}
	again := delivered("b") // beyond the bound
	again.Result, again.Verdict.Kind = &policy.Result{Class: policy.ClassReset}, policy.Again
	first := delivered("a")
	m.AttemptEnded(first)
	m.AttemptEnded(again)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		m.AttemptEnded(first)
		m.AttemptEnded(again)
	}))
}
