package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// process is one run of ringback serve or dev.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	url  string        // of its API
	gone chan struct{} // closed when it has ended
	log  logTail
}

// cleanEnv returns the environment without variables of Ringback.
func cleanEnv(extra ...string) []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "RINGBACK_") {
			env = append(env, pair)
		}
	}
	return append(env, extra...)
}

// start runs ringback serve on a free port until the test ends, and waits until it is ready.
func start(t testing.TB, store string, flags ...string) *process {
	t.Helper()
	return startProgram(t, binary, store, flags...)
}

// startProgram is start with another binary.
func startProgram(t testing.TB, program, store string, flags ...string) *process {
	t.Helper()
	args := append([]string{"serve", "--addr=127.0.0.1:0", "--store=" + store, "--allow-private", "--log=json"},
		flags...)
	return launchProgram(t, program, nil, args...)
}

// launch runs a command that serves and logs JSON, and waits until it is ready.
func launch(t testing.TB, stdout io.Writer, args ...string) *process {
	t.Helper()
	return launchProgram(t, binary, stdout, args...)
}

// launchProgram is launch with another binary.
func launchProgram(t testing.TB, program string, stdout io.Writer, args ...string) *process {
	t.Helper()
	require.NoError(t, watch())
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), program, args...), gone: make(chan struct{})}
	p.cmd.Env = cleanEnv()
	p.cmd.Stdout = stdout
	stderr, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())

	listening := make(chan string, 1)
	go p.follow(stderr, listening)
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the end of ringback's log (process %d):\n%s", p.cmd.Process.Pid, p.log.text())
		}
	})
	select {
	case addr := <-listening:
		p.url = "http://" + addr
	case <-p.gone:
		t.Fatalf("ringback ended at its start:\n%s", p.log.text())
	case <-time.After(testkit.MustCome):
		t.Fatalf("ringback does not say where it listens:\n%s", p.log.text())
	}
	eventually(t, func() bool { return p.ready() }, "ringback is not ready")
	return p
}

// follow reads the log until the process has ended.
func (p *process) follow(stderr io.Reader, listening chan<- string) {
	defer close(p.gone)
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.log.add(lines.Text())
		var line struct {
			Msg  string `json:"msg"`
			Addr string `json:"addr"`
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			listening <- line.Addr
		}
	}
	_ = p.cmd.Wait() // the exit code is read from the process's state
}

// ready reports whether /readyz succeeds.
func (p *process) ready() bool {
	resp, err := client.Get(p.url + "/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// unready returns the reason of a failing /readyz; empty: ready, or no response.
func (p *process) unready() (why string) {
	status, answer, err := send(p.url, http.MethodGet, "/readyz", nil)
	var problem struct{ Detail string }
	if err != nil || status != http.StatusServiceUnavailable || json.Unmarshal(answer, &problem) != nil {
		return ""
	}
	return problem.Detail
}

// kill kills the process.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended already
	<-p.gone
}

// terminate sends SIGTERM and returns the exit code and the duration of the stop.
func (p *process) terminate() (code int, took time.Duration) {
	p.t.Helper()
	began := time.Now()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.gone:
	case <-time.After(testkit.MustCome):
		p.t.Fatalf("ringback did not stop within %s", testkit.MustCome)
	}
	return p.cmd.ProcessState.ExitCode(), time.Since(began)
}

// logTail keeps the newest lines of a log and counts all.
type logTail struct {
	mu    sync.Mutex
	lines []string
	all   int
}

func (l *logTail) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all++
	if l.lines = append(l.lines, line); len(l.lines) > 40 {
		l.lines = l.lines[1:]
	}
}

func (l *logTail) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// written returns the number of lines so far.
func (l *logTail) written() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}
