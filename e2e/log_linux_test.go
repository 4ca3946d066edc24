package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// startUnread starts ringback serve with its log in a pipe of one page, and reads the log up to the listen address. The
// second result closes the pipe's read end.
func startUnread(t *testing.T) (p *process, closeReader func()) {
	t.Helper()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	const setPipeSize = 1031 // F_SETPIPE_SZ
	_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, writer.Fd(), setPipeSize, 4096)
	require.Zero(t, errno)

	args := []string{"serve", "--addr=127.0.0.1:0", "--store=" + newSQLite(t), "--allow-private", "--log=json"}
	p = &process{t: t, cmd: exec.CommandContext(t.Context(), binary, args...), gone: make(chan struct{})}
	p.cmd.Env, p.cmd.Stderr = cleanEnv(), writer
	require.NoError(t, p.cmd.Start())
	require.NoError(t, writer.Close())
	go func() {
		defer close(p.gone)
		_ = p.cmd.Wait() // the exit code is read from the process's state
	}()
	t.Cleanup(func() {
		p.kill()
		_ = reader.Close()
	})
	for lines := bufio.NewScanner(reader); p.url == ""; {
		require.True(t, lines.Scan(), "ringback ended at its start")
		var line struct{ Msg, Addr, Time string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line), lines.Text())
		require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, line.Time, "milliseconds, in UTC")
		if line.Msg == "listening" {
			p.url = "http://" + line.Addr
		}
	}
	eventually(t, p.ready)
	return p, func() { require.NoError(t, reader.Close()) }
}

// registerMany registers n jobs due now. Each attempt writes a log line.
func registerMany(t *testing.T, p *process, url, prefix string, n int) {
	t.Helper()
	jobs := make([]obj, n)
	for i := range jobs {
		jobs[i] = obj{"id": fmt.Sprintf("%s-%d", prefix, i), "url": url}
	}
	call[any](t, p, "POST", "/v1/batch", obj{"jobs": jobs}, 200)
}

func TestLog_BlockedPipeStopsNeitherDeliveriesNorExit(t *testing.T) {
	t.Parallel()
	receiver := newReceiver(t)
	p, _ := startUnread(t)
	const jobs = 300 // of which 100 a second write 200 B each
	registerMany(t, p, receiver.URL+"/ok", "unread", jobs)
	receiver.until(t, "all jobs arrive", func() bool { return receiver.all >= jobs })
	code, _ := p.terminate()
	require.Zero(t, code)
}

func TestLog_ReaderThatLeavesDoesNotEndTheProcess(t *testing.T) {
	t.Parallel()
	receiver := newReceiver(t)
	p, closeReader := startUnread(t)
	closeReader()
	const jobs = 10
	registerMany(t, p, receiver.URL+"/ok", "gone", jobs)
	receiver.until(t, "all jobs arrive", func() bool { return receiver.all >= jobs })
	eventually(t, func() bool {
		dropped := metric(t, p, "ringback_log_lines_dropped_total")
		return dropped != "" && dropped != "0"
	}, "dropped lines are counted")
	code, _ := p.terminate()
	require.Zero(t, code)
}
