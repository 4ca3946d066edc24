package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// events are what go test -json reports of packages that pass, fail in each way, have no tests and cannot be built.
//
//go:embed testdata/events.json
var events string

// reportOf runs the command over some events of a number of packages.
func reportOf(t *testing.T, packages string, streams ...string) (code int, output, log string) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"-packages=" + packages, "-log=" + filepath.Join(dir, "bin", "test.log")}
	for i, text := range streams {
		name := filepath.Join(dir, string(rune('a'+i)))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		args = append(args, name)
	}
	var stdout bytes.Buffer
	code = run(args, &stdout, &stdout)
	written, err := os.ReadFile(filepath.Join(dir, "bin", "test.log"))
	require.NoError(t, err)
	return code, strings.ReplaceAll(stdout.String(), dir, ""), string(written)
}

func TestReport_EndsWithEachFailureItsReasonAndHowToRunItAlone(t *testing.T) {
	code, output, log := reportOf(t, "4", events)
	require.Equal(t, 1, code)
	require.Equal(t, `ok    pool                                       cached  1 of 4
FAIL  e2e TestJob/costs_$5_(due)
FAIL  e2e TestRace
FAIL  e2e                                          2.0s  3 of 4
FAIL  job                                          0.0s  4 of 4

FAIL e2e TestJob/costs_$5_(due)
     life_test.go:95: Not equal:
     expected: 1
     actual  : 2
     alone: make test PKG=./e2e RUN='^TestJob$$/^costs_.5_.due.$$'
FAIL e2e TestRace
     data race
     pool/attempt.go:51
     alone: make test PKG=./e2e RUN='^TestRace$$'
FAIL job
     job/a_test.go:7:2: undefined: x
     alone: make test PKG=./job
The complete output is in /bin/test.log.
`, output)
	require.Contains(t, log, "the end of ringback's log")
}

func TestReport_SummaryFitsTwentyLines(t *testing.T) {
	var many strings.Builder
	for range 30 {
		many.WriteString(strings.ReplaceAll(events, "TestRace", "TestRace"+strings.Repeat("x", many.Len()%7)))
	}
	code, output, _ := reportOf(t, "4", many.String())
	require.Equal(t, 1, code)
	_, summary, found := strings.Cut(output, "\n\n")
	require.True(t, found)
	require.LessOrEqual(t, strings.Count(summary, "\n"), summaryLines)
	require.Contains(t, summary, "more failures")
}

func TestReport_ReadsStreamsSideBySide(t *testing.T) {
	one := `{"Action":"pass","Package":"github.com/ringback/ringback/sign","Elapsed":1}` + "\n"
	code, output, _ := reportOf(t, "2", one, strings.ReplaceAll(one, "sign", "seal"))
	require.Zero(t, code)
	require.Contains(t, output, "2 of 2")
}

func TestReport_FailsIfAPackageDoesNotEnd(t *testing.T) {
	code, output, _ := reportOf(t, "3", "go: the go command's own error\n"+
		`{"Action":"start","Package":"github.com/ringback/ringback/sign"}`+"\n")
	require.Equal(t, 1, code)
	require.Contains(t, output, "go: the go command's own error\n")
	require.Contains(t, output, "FAIL 3 of 3 packages did not end, among them sign\n")
}

func TestReport_NamesWhatRunsWhenNothingEndsForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var output bytes.Buffer
		r := newReport(&output, io.Discard, "", 1)
		events, tests := io.Pipe()
		go r.read([]io.Reader{events})
		time.Sleep(quietTime + time.Second)
		began := time.Now()
		for _, name := range []string{"TestA", "TestA/part", "TestB"} {
			_, err := fmt.Fprintf(tests,
				`{"Time":%q,"Action":"run","Package":"github.com/ringback/ringback/sign","Test":%q}`+"\n",
				began.Format(time.RFC3339Nano), name)
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		_, err := fmt.Fprintln(tests, `{"Action":"pass","Package":"github.com/ringback/ringback/sign","Test":"TestB"}`)
		require.NoError(t, err)
		time.Sleep(2 * quietTime)
		require.NoError(t, tests.Close())
		synctest.Wait()
		require.Equal(t, `      still running: the compiler
      still running: sign TestA (59s)
      still running: sign TestA (1m59s)
`, output.String())
	})
}

func TestReport_FailsIfItsLogIsNotComplete(t *testing.T) {
	name := filepath.Join(t.TempDir(), "events")
	require.NoError(t, os.WriteFile(name, []byte(`{"Action":"output","Output":"text"}`), 0o600))
	var output bytes.Buffer
	require.Equal(t, 1, run([]string{"-packages=0", "-log=/dev/full", name}, &output, &output))
	require.Contains(t, output.String(), "/dev/full is not complete")
}

func TestReason_OfAPanicNamesItsPlace(t *testing.T) {
	require.Equal(t, []string{"panic: no such job", "job/job.go:12"}, reasonOf([]string{
		"=== RUN   TestA", "panic: no such job", "", "goroutine 7 [running]:", "main.f(...)",
		"\t/src/job/job.go:12 +0x1",
	}))
	require.Equal(t, []string{"panic: test timed out after 30m0s", "TestB (29m0s)"}, reasonOf([]string{
		"panic: test timed out after 30m0s", "\trunning tests:", "\t\tTestB (29m0s)", "", "goroutine 1 [chan receive]:",
	}))
}

func TestReason_WithoutAnAssertionIsTheEndOfTheOutput(t *testing.T) {
	require.Equal(t, []string{"a_test.go:3: it is wrong"}, reasonOf([]string{
		"=== RUN   TestA", "    a_test.go:3: it is wrong", "--- FAIL: TestA (0.00s)", "FAIL",
	}))
}
