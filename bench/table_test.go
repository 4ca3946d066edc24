package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbers_AreShort(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.0041: "0.004", 0.123: "0.12", 3.456: "3.46", 34.56: "34.6", 345.6: "346",
		1234: "1,234", 1234567: "1,234,567", -976.4: "−976", -1234: "−1,234",
	} {
		require.Equal(t, want, number(v))
	}
}

func TestGoals_ReportWhetherTheyAreMet(t *testing.T) {
	bar, aim := atLeast(0.6, 0.8).texts(&summary{Median: 0.7})
	require.Equal(t, "≥ 0.6 ✓", bar)
	require.Equal(t, "≥ 0.8 ✗", aim)

	bar, aim = atMost(330, 265).texts(&summary{Median: 265})
	require.Equal(t, "≤ 330 ✓", bar)
	require.Equal(t, "≤ 265 ✓", aim)

	bar, _ = atLeast(50_000, 0).texts(nil)
	require.Equal(t, "≥ 50,000 ✗", bar, "nothing was measured")
}

// measured is a document as a run leaves it.
func measured() *document {
	r := &result{Name: "throughput-redis", Title: "deliveries"}
	for _, v := range []float64{20_000, 30_000, 25_000} {
		r.add(ours(redisEngine), reading{perSecond: v})
	}
	for _, v := range []float64{40_000, 40_000, 25_000} {
		r.add(bareName, reading{perSecond: v})
	}
	r.compare("deliveries a second", ours(redisEngine), bareName, perSecond, atLeast(0.6, 0.8))
	r.compare("beside nobody", ours(redisEngine), asynqName, perSecond, nil)
	r.value("alone", ours(redisEngine), perSecond, nil)
	lines := &result{Name: "concurrency", Title: "by concurrency", Error: "broken | off\nlater", Curves: []curve{
		{Name: ours(redisEngine), X: []float64{1, 16, 64}, Y: []float64{2000, 9000, 20_000}},
		{Name: "A & B", X: []float64{1, 16, 64}, Y: []float64{1000, 8000, 38_000}},
	}}
	return &document{Machine: machine{CPU: "a processor"}, Figures: []*result{r, lines}}
}

func TestTable_HasARowPerComparison(t *testing.T) {
	text := measured().markdown()
	require.Contains(t, text,
		"| deliveries a second | 25,000 (20,000–30,000) /s | bare loop: 40,000 (25,000–40,000) /s | 0.75 (0.50–1.00) "+
			"| ≥ 0.6 ✓ | ≥ 0.8 ✗ |\n")
	require.Contains(t, text, "| alone | 25,000 (20,000–30,000) /s |  |  |  |  |\n")
	require.NotContains(t, text, "beside nobody", "there is no row beside a peer that was left out")
	require.Contains(t, text, "| by concurrency | failed: broken / off | | | | |\n")
	require.Contains(t, text, "a processor")
}

func TestRun_RoundTrips(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench.json")
	d := measured()
	require.NoError(t, d.write(path))
	again, err := readDocument(path)
	require.NoError(t, err)
	require.Equal(t, d, again)
}
