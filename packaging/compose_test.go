package packaging

import (
	"bufio"
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// startTime bounds the start of a process, or a change of its health, on a busy machine.
const startTime = 2 * time.Minute

// composeService has the tested fields of a service in compose.yaml.
type composeService struct {
	Build       struct{ Args map[string]string }
	Command     []string
	Environment map[string]string
	Volumes     []string
	Ports       []string
	Healthcheck struct{ Test []string }
	Stop        string `yaml:"stop_grace_period"`
}

func compose(t *testing.T) (redis, service composeService) {
	t.Helper()
	var c struct {
		Services struct{ Redis, Ringback composeService }
		Volumes  map[string]any
	}
	readYAML(t, "../compose.yaml", &c)
	for _, volume := range c.Services.Redis.Volumes {
		named, at, _ := strings.Cut(volume, ":")
		require.Contains(t, c.Volumes, named)
		require.Equal(t, "/data", at, "where the image keeps its files")
	}
	require.Len(t, c.Services.Redis.Volumes, 1)
	return c.Services.Redis, c.Services.Ringback
}

func TestCompose_FitsTheImageAndIsPublishedOnLoopbackOnly(t *testing.T) {
	redis, s := compose(t)
	require.Empty(t, redis.Ports, "it has no password")
	require.NotEmpty(t, s.Ports)
	for _, port := range s.Ports {
		require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s is published beyond this machine", port)
		require.True(t, strings.HasSuffix(port, ":"+onlyInstruction(t, "EXPOSE")),
			"%s is not the port of the image", port)
	}
	for arg := range s.Build.Args {
		require.Contains(t, dockerfile(t, "ARG"), arg+"=dev")
	}
	require.Regexp(t, `^\$\{RINGBACK_TOKEN:\?[^}]+\}$`, s.Environment["RINGBACK_TOKEN"],
		"nothing starts without a token of its user's own")
	require.Equal(t, "${RINGBACK_SECRET_KEY:-}", s.Environment["RINGBACK_SECRET_KEY"],
		"a key of its user's own, or none")
	requireSettings(t, slices.Collect(maps.Keys(s.Environment)))
	require.Greater(t, duration(t, s.Stop), duration(t, s.Environment["RINGBACK_GRACE"]))
}

// compose.yaml without Docker: a redis-server with its settings, the binary with the environments of the image and the
// service, and the health check.
func TestCompose_Starts(t *testing.T) {
	redis, s := compose(t)
	server := redistest.Start(t, redis.Command[1:]...)
	requireDurable(t, server)
	require.True(t, strings.HasPrefix(s.Environment["RINGBACK_STORE"], "redis://redis:6379/"))
	check := append([]string{"-u", server.URL()}, redis.Healthcheck.Test[2:]...)
	out, err := exec.CommandContext(t.Context(), "redis-cli", check...).CombinedOutput()
	require.NoError(t, err, string(out))

	env := imageEnv(t)
	for name, value := range s.Environment {
		switch name {
		case "RINGBACK_STORE":
			value = strings.Replace(value, "redis:6379", server.Addr(), 1)
		case "RINGBACK_TOKEN":
			value = "a-token-0123456789"
		case "RINGBACK_SECRET_KEY":
			value = strings.Repeat("5e", 32)
		}
		env = append(env, name+"="+value)
	}
	// A free port of loopback, in place of the image's address.
	serve := command(t, append(env, "RINGBACK_ADDR=127.0.0.1:0"), "serve")
	log, err := serve.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, serve.Start())
	listening, stopped := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(stopped)
		defer func() { _ = serve.Wait() }() // the exit code is read from the process's state
		for lines := bufio.NewScanner(log); lines.Scan(); {
			var line struct{ Msg, Addr string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
				listening <- line.Addr
			}
		}
	}()
	t.Cleanup(func() { _ = serve.Process.Kill(); <-stopped })
	select {
	case addr := <-listening:
		env = append(env, "RINGBACK_ADDR="+addr)
	case <-stopped:
		t.Fatal("it ended at its start")
	case <-time.After(startTime):
		t.Fatal("it does not say where it listens")
	}

	healthy := func() int {
		code, _, _ := ringback(t, env, "health")
		return code
	}
	require.Eventually(t, func() bool { return healthy() == 0 }, startTime, 50*time.Millisecond,
		"it does not become healthy")
	server.Kill()
	require.Eventually(t, func() bool { return healthy() == 1 }, startTime, 50*time.Millisecond,
		"it is healthy without its store")
	code, _, stderr := ringback(t, env, "health", "--live")
	require.Zero(t, code, stderr)

	require.NoError(t, serve.Process.Signal(syscall.SIGTERM))
	select {
	case <-stopped:
		require.Zero(t, serve.ProcessState.ExitCode())
	case <-time.After(duration(t, s.Stop)):
		t.Fatal("it does not stop within stop_grace_period")
	}
}

// requireDurable fails for a Redis that may lose or evict data.
func requireDurable(t *testing.T, server *redistest.Server) {
	t.Helper()
	for name, want := range map[string]string{
		"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction",
	} {
		out, err := exec.CommandContext(t.Context(), "redis-cli", "-u", server.URL(), "config", "get", name).Output()
		require.NoError(t, err)
		require.Equal(t, name+"\n"+want+"\n", string(out))
	}
}
