package policy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

// Entries of the table of verdicts.
var (
	delivered = policy.Verdict{Kind: policy.Delivered}
	again     = policy.Verdict{Kind: policy.Again, Wait: time.Minute}
	released  = policy.Verdict{Kind: policy.Released}
)

func dead(reason policy.Reason) policy.Verdict {
	return policy.Verdict{Kind: policy.Dead, Reason: reason}
}

// statusRange is a range of statuses with one verdict.
type statusRange struct {
	from, to int
	verdict  policy.Verdict
}

// verdicts is the table of statuses: the verdict of each policy on each status from 100 to 999. A status in no range is
// retried.
var verdicts = []struct {
	name   string
	change func(*policy.Terms)
	result policy.Result // the status is filled in
	tries  int
	bands  []statusRange
}{
	{
		name:  "built-in",
		bands: []statusRange{{200, 299, delivered}, {410, 410, dead(policy.ReasonGaveUp)}},
	},
	{
		name:   "gives up on nothing",
		change: giveUpOn(),
		bands:  []statusRange{{200, 299, delivered}},
	},
	{
		name:   "gives up on classes",
		change: giveUpOn("4xx", "501"),
		bands: []statusRange{
			{200, 299, delivered},
			{400, 499, dead(policy.ReasonGaveUp)},
			{501, 501, dead(policy.ReasonGaveUp)},
		},
	},
	{
		name:   "a success comes before giving up",
		change: giveUpOn("2xx", "3xx"),
		bands:  []statusRange{{200, 299, delivered}, {300, 399, dead(policy.ReasonGaveUp)}},
	},
	{
		name:   "one status alone is a success",
		change: func(t *policy.Terms) { t.Success.Status = []string{"200"} },
		bands:  []statusRange{{200, 200, delivered}, {410, 410, dead(policy.ReasonGaveUp)}},
	},
	{
		name:   "redirects and conflicts are successes too",
		change: func(t *policy.Terms) { t.Success.Status = []string{"2xx", "3xx", "409", "410"} },
		bands:  []statusRange{{200, 399, delivered}, {409, 410, delivered}},
	},
	{
		name:   "an empty list of statuses is none",
		change: func(t *policy.Terms) { t.Success.Status = []string{} },
		bands:  []statusRange{{200, 299, delivered}, {410, 410, dead(policy.ReasonGaveUp)}},
	},
	{
		name:   "the body says yes",
		change: func(t *policy.Terms) { t.Success.BodyEquals = "success" },
		result: policy.Result{Body: []byte("success\n")},
		bands:  []statusRange{{200, 299, delivered}, {410, 410, dead(policy.ReasonGaveUp)}},
	},
	{
		name:   "the body says no",
		change: func(t *policy.Terms) { t.Success.BodyEquals = "success" },
		result: policy.Result{Body: []byte("fail")},
		bands: []statusRange{
			{200, 299, policy.Verdict{
				Kind: policy.Again, Wait: time.Minute,
				Note: "response body does not equal success.body_equals",
			}},
			{410, 410, dead(policy.ReasonGaveUp)},
		},
	},
	{
		name:   "the receiver says never again",
		result: policy.Result{NonRetryable: true},
		bands: []statusRange{
			{200, 299, delivered},
			{400, 409, dead(policy.ReasonNonRetryable)},
			{410, 410, dead(policy.ReasonGaveUp)},
			{411, 499, dead(policy.ReasonNonRetryable)},
		},
	},
	{
		name:  "the last retry",
		tries: 4,
		bands: []statusRange{
			{100, 199, dead(policy.ReasonExhausted)},
			{200, 299, delivered},
			{300, 409, dead(policy.ReasonExhausted)},
			{410, 410, dead(policy.ReasonGaveUp)},
			{411, 999, dead(policy.ReasonExhausted)},
		},
	},
	{
		name:   "the last retry, and never again",
		tries:  4,
		result: policy.Result{NonRetryable: true},
		bands: []statusRange{
			{100, 199, dead(policy.ReasonExhausted)},
			{200, 299, delivered},
			{300, 399, dead(policy.ReasonExhausted)},
			{400, 409, dead(policy.ReasonNonRetryable)},
			{410, 410, dead(policy.ReasonGaveUp)},
			{411, 499, dead(policy.ReasonNonRetryable)},
			{500, 999, dead(policy.ReasonExhausted)},
		},
	},
	{
		name:   "asked to wait",
		result: policy.Result{RetryAfter: 2 * time.Minute},
		bands: []statusRange{
			{100, 199, waiting(0)},
			{200, 299, delivered},
			{300, 407, waiting(0)},
			{408, 408, waiting(time.Minute)},
			{409, 409, waiting(0)},
			{410, 410, dead(policy.ReasonGaveUp)},
			{411, 424, waiting(0)},
			{425, 425, waiting(time.Minute)},
			{426, 428, waiting(0)},
			{429, 429, waiting(time.Minute)},
			{430, 499, waiting(0)},
			{500, 599, waiting(time.Minute)},
			{600, 999, waiting(0)},
		},
	},
}

// waiting is a retry after the requested two minutes, with a cooldown of the lane.
func waiting(lane time.Duration) policy.Verdict {
	return policy.Verdict{Kind: policy.Again, Wait: 2 * time.Minute, LaneWait: lane}
}

func TestJudge_EveryStatusUnderEveryPolicy(t *testing.T) {
	for _, row := range verdicts {
		given, result := terms(), row.result
		if row.change != nil {
			row.change(&given)
		}
		for status := 100; status <= 999; status++ {
			wanted := again
			for _, b := range row.bands {
				if status >= b.from && status <= b.to {
					wanted = b.verdict
				}
			}
			result.Status = status
			require.Equal(t, wanted, policy.Judge(given, result, policy.Progress{FailedAttempts: max(row.tries, 1)}, 0),
				"%s: status %d", row.name, status)
		}
	}
}

// An invalid status is never a success, and never gives up.
func TestJudge_RetriesInvalidStatuses(t *testing.T) {
	given := terms(giveUpOn("2xx", "-xx", "0xx", "1xx"))
	for _, status := range []int{-220, -22, -1, 0, 2, 20, 99, 1000, 2000, 1 << 40} {
		require.Equal(t, again, policy.Judge(given, policy.Result{Status: status},
			policy.Progress{FailedAttempts: 1}, 0), "status %d", status)
	}
}

// classes is the table of verdicts for attempts without a complete response, with any status.
var classes = map[policy.ErrorClass]struct {
	verdict policy.Verdict
	timeout bool
	away    bool // counts towards the lane's breaker
}{
	policy.ClassDNS:            {verdict: again, away: true},
	policy.ClassRefused:        {verdict: again, away: true},
	policy.ClassUnreachable:    {verdict: again, away: true},
	policy.ClassReset:          {verdict: again, away: true},
	policy.ClassTLS:            {verdict: again, away: true},
	policy.ClassTLSExpired:     {verdict: again, away: true},
	policy.ClassTLSName:        {verdict: again, away: true},
	policy.ClassTLSAuthority:   {verdict: again, away: true},
	policy.ClassTLSVersion:     {verdict: again, away: true},
	policy.ClassTLSClient:      {verdict: again, away: true},
	policy.ClassProxy:          {verdict: again, away: true},
	policy.ClassHTTP:           {verdict: again, away: true},
	policy.ClassTooLarge:       {verdict: again, away: true},
	policy.ClassTimeoutDial:    {verdict: again, away: true, timeout: true},
	policy.ClassTimeoutTLS:     {verdict: again, away: true, timeout: true},
	policy.ClassTimeoutHeaders: {verdict: again, away: true, timeout: true},
	policy.ClassTimeoutBody:    {verdict: again, away: true, timeout: true},
	policy.ClassTimeoutSend:    {verdict: again, away: true, timeout: true},
	policy.ClassBlocked:        {verdict: dead(policy.ReasonBlocked)},
	policy.ClassInvalid:        {verdict: dead(policy.ReasonInvalid)},
	policy.ClassNoURL:          {verdict: again},
	policy.ClassShutdown:       {verdict: released},
	policy.ClassLocalResources: {verdict: policy.Verdict{Kind: policy.Released, Wait: time.Second}},
	// of a result that forbids retries, as below
	policy.ClassConsumer: {verdict: dead(policy.ReasonNonRetryable)},
	policy.ClassOther:    {verdict: again, away: true},
}

func TestJudge_EveryErrorClass(t *testing.T) {
	for _, text := range constants(t, "ErrorClass") {
		class := policy.ErrorClass(text)
		if class == policy.ClassNone {
			continue
		}
		row, known := classes[class]
		require.True(t, known, "class %s has no row in the table", class)
		require.Equal(t, row.timeout, class.Timeout(), class)
		for _, status := range []int{0, 200, 404, 410, 429, 503} {
			result := policy.Result{Class: class, Status: status, NonRetryable: true}
			require.Equal(t, row.verdict, policy.Judge(terms(), result, policy.Progress{FailedAttempts: 1}, 0),
				"class %s with status %d", class, status)
			require.Equal(t, row.away, result.Unavailable(), class)
			require.False(t, result.Throttled(), class)
		}
		last := policy.Judge(terms(), policy.Result{Class: class}, policy.Progress{FailedAttempts: 4}, 0)
		if row.verdict == again || class == policy.ClassConsumer {
			require.Equal(t, dead(policy.ReasonExhausted), last, class)
		} else {
			require.Equal(t, row.verdict, last, class)
		}
	}
	require.False(t, policy.ClassNone.Timeout())
}

func TestReasons_ListsEveryReasonOnce(t *testing.T) {
	var listed []string
	for _, reason := range policy.Reasons() {
		listed = append(listed, string(reason))
	}
	require.ElementsMatch(t, constants(t, "Reason"), listed)
}

// constants returns the values of a type's constants from the source, so that a new one without a row fails the test.
func constants(t *testing.T, ofType string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "result.go", nil, 0)
	require.NoError(t, err)
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != ofType {
			return false
		}
		for _, v := range spec.Values {
			literal, ok := v.(*ast.BasicLit)
			require.True(t, ok)
			value, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			values = append(values, value)
		}
		return false
	})
	require.NotEmpty(t, values)
	return values
}
