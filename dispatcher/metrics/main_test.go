package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringback/ringback/dispatcher/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// series is a line of a response.
type series struct {
	name   string
	labels map[string]string
	value  float64
}

// scraped is a response.
type scraped struct {
	series []series
	types  map[string]string // by name
}

var (
	line  = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? (\S+)$`)
	label = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
)

// scrape makes a request as Prometheus does.
func scrape(t *testing.T, m *metrics.Metrics) scraped {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, answer.Code, answer.Body.String())
	got := scraped{types: make(map[string]string)}
	for text := range strings.Lines(answer.Body.String()) {
		text = strings.TrimSpace(text)
		if kind, ok := strings.CutPrefix(text, "# TYPE "); ok {
			name, kind, _ := strings.Cut(kind, " ")
			got.types[name] = kind
		}
		if !strings.HasPrefix(text, "ringback_") {
			continue
		}
		parts := line.FindStringSubmatch(text)
		require.NotNil(t, parts, text)
		one := series{name: parts[1], labels: make(map[string]string)}
		for _, pair := range label.FindAllStringSubmatch(parts[2], -1) {
			one.labels[pair[1]] = pair[2]
		}
		number, err := strconv.ParseFloat(parts[3], 64)
		require.NoError(t, err, text)
		one.value = number
		got.series = append(got.series, one)
	}
	return got
}

// all returns the series of a name with these labels: name, value, name, value ….
func (s scraped) all(name string, labels ...string) (found []series) {
next:
	for _, one := range s.series {
		if one.name != name {
			continue
		}
		for i := 0; i < len(labels); i += 2 {
			if one.labels[labels[i]] != labels[i+1] {
				continue next
			}
		}
		found = append(found, one)
	}
	return found
}

// value returns the value of the only such series; -1: none.
func (s scraped) value(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	found := s.all(name, labels...)
	if len(found) == 0 {
		return -1
	}
	require.Len(t, found, 1, "%s with %v", name, labels)
	return found[0].value
}

// sum returns the sum of all such series.
func (s scraped) sum(name string, labels ...string) (sum float64) {
	for _, one := range s.all(name, labels...) {
		sum += one.value
	}
	return sum
}
