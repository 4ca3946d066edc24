package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlot_IsWellFormedAndNamesItsLines(t *testing.T) {
	c := throughputChart(measured().figure("concurrency"))
	for name, theme := range themes {
		text := c.svg(theme)
		d := xml.NewDecoder(strings.NewReader(text))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
		}
		require.Equal(t, len(c.Lines), strings.Count(text, "<polyline"))
		require.Contains(t, text, ">Ringback, Redis</text>")
		require.Contains(t, text, ">A &amp; B</text>")
		require.Contains(t, text, theme.surface)
	}
}

func TestPlot_PlacesPointsByTheirValues(t *testing.T) {
	c := chart{Log: true, Low: 1, High: 100, YHigh: 10}
	require.InDelta(t, marginLeft, c.x(1), 0.001)
	require.InDelta(t, (marginLeft+plotWidth-marginRight)/2.0, c.x(10), 0.001, "halfway of a logarithmic axis")
	require.InDelta(t, plotWidth-marginRight, c.x(100), 0.001)
	require.InDelta(t, marginLeft, c.x(-5), 0.001, "lower values are at the edge")
	require.InDelta(t, plotHeight-marginBottom, c.y(0), 0.001)
	require.InDelta(t, marginTop, c.y(10), 0.001)

	c.Log = false
	require.InDelta(t, (marginLeft+plotWidth-marginRight)/2.0, c.x(50.5), 0.001)
}

func TestPlot_AxesHaveRoundNumbers(t *testing.T) {
	require.Equal(t, []float64{0, 5000, 10_000, 15_000, 20_000, 25_000, 30_000, 35_000, 40_000}, steps(38_000))
	require.Equal(t, []float64{0, 200_000, 400_000, 600_000, 800_000, 1_000_000}, steps(1_000_000))
	for _, high := range []float64{0, 0.03, 1, 7, 12, 99, 450, 20_000, 640} {
		ticks := steps(high)
		require.GreaterOrEqual(t, ticks[len(ticks)-1], high)
		require.LessOrEqual(t, len(ticks), 10, "%v: %v", high, ticks)
	}
	require.Equal(t, "40k", short(40_000))
	require.Equal(t, "0.25", short(0.25))
	require.Equal(t, "1M", short(1_000_000))
}

func TestPlot_DistributionRisesFromZeroToOne(t *testing.T) {
	c := distribution("x", []float64{3, 1, 2, 4})
	require.InDelta(t, 1.0, c.X[0], 0)
	require.InDelta(t, 4.0, c.X[len(c.X)-1], 0)
	require.InDelta(t, 0.0, c.Y[0], 0)
	require.InDelta(t, 1.0, c.Y[len(c.Y)-1], 0)
	require.IsNonDecreasing(t, c.X)
}

func TestPage_KeepsUnmeasuredFigures(t *testing.T) {
	dir := t.TempDir()
	d := measured()
	require.NoError(t, writeDocs(dir, d))
	path := filepath.Join(dir, docsPage)
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(page), "benchmarks/throughput-dark.svg")
	require.NotContains(t, string(page), "memory-dark.svg", "memory was not measured")
	for _, name := range []string{"throughput-dark.svg", "throughput-light.svg", "runs.json"} {
		require.FileExists(t, filepath.Join(dir, docsFolder, name))
	}

	require.NoError(t, os.WriteFile(path, append(page, "By hand.\n"...), 0o600))
	d.Machine.CPU = "another"
	require.NoError(t, writeDocs(dir, d))
	page, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(page), "By hand.")
	require.Contains(t, string(page), "another")
	require.NotContains(t, string(page), "a processor")

	_, err = between("no marks", "x")
	require.Error(t, err)
}
