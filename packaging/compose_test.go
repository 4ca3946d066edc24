package packaging

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// startTime is how long a process may take to serve, or to notice, on a machine that is busy with other tests.
const startTime = 30 * time.Second

// A composition is what compose.yaml may hold: the names of the Compose Specification that it uses.
type composition struct {
	Name     string
	Services map[string]composed
	Volumes  map[string]any
}

type composed struct {
	Image string
	Build struct {
		Context string
		Args    map[string]string
	}
	Command   []string
	DependsOn map[string]struct {
		Condition string
	} `yaml:"depends_on"`
	Environment map[string]string
	Volumes     []string
	Ports       []string
	Healthcheck struct {
		Test        []string
		Interval    string
		Timeout     string
		Retries     int
		StartPeriod string `yaml:"start_period"`
	}
	Restart         string
	StopGracePeriod string   `yaml:"stop_grace_period"`
	ReadOnly        bool     `yaml:"read_only"`
	CapDrop         []string `yaml:"cap_drop"`
	SecurityOpt     []string `yaml:"security_opt"`
}

func compose(t *testing.T) (redis, service composed) {
	t.Helper()
	var c composition
	readYAML(t, "../compose.yaml", &c)
	require.Len(t, c.Services, 2)
	for name, s := range c.Services {
		for _, volume := range s.Volumes {
			named, _, _ := strings.Cut(volume, ":")
			require.Contains(t, c.Volumes, named, "a volume of %s", name)
		}
		for needed := range s.DependsOn {
			require.Contains(t, c.Services, needed)
		}
	}
	return c.Services["redis"], c.Services["ringback"]
}

func TestTheComposedServiceIsShutOff(t *testing.T) {
	_, s := compose(t)
	require.True(t, s.ReadOnly)
	require.Equal(t, []string{"ALL"}, s.CapDrop)
	require.Contains(t, s.SecurityOpt, "no-new-privileges:true")
	require.Equal(t, "unless-stopped", s.Restart)
	require.Equal(t, ".", s.Build.Context)
	require.Equal(t, "service_healthy", s.DependsOn["redis"].Condition)
	require.NotEmpty(t, s.Ports)
	for _, port := range s.Ports {
		require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s is published beyond this machine", port)
		require.True(t, strings.HasSuffix(port, ":"+the(t, lastStage(t), "EXPOSE")), "%s is not the port of the image", port)
	}
	for arg := range s.Build.Args {
		require.Contains(t, dockerfile(t), instruction{"ARG", arg + "=dev"})
	}
}

func TestTheComposedServiceHasRealSettings(t *testing.T) {
	_, s := compose(t)
	var names []string
	for name, value := range s.Environment {
		names = append(names, name)
		if name == "RINGBACK_TOKEN" {
			require.Regexp(t, `^\$\{RINGBACK_TOKEN:\?[^}]+\}$`, value, "nothing starts without a token of its user's own")
		}
	}
	require.Contains(t, names, "RINGBACK_TOKEN")
	requireSettings(t, names)
	require.Greater(t, duration(t, s.StopGracePeriod), duration(t, s.Environment["RINGBACK_GRACE"]))
}

func TestTheComposedRedisLosesNothing(t *testing.T) {
	redis, _ := compose(t)
	require.Regexp(t, `^redis:\d+\.\d+-alpine$`, redis.Image)
	require.NotEmpty(t, redis.Volumes)
	require.True(t, strings.HasSuffix(redis.Volumes[0], ":/data"), "where the image keeps its files")
	require.Empty(t, redis.Ports, "nobody else reaches it")
	require.Equal(t, []string{"CMD", "redis-cli", "-e", "ping"}, redis.Healthcheck.Test)
	require.Equal(t, "redis-server", redis.Command[0])
	for _, setting := range [][]string{
		{"--appendonly", "yes"}, {"--appendfsync", "always"}, {"--maxmemory-policy", "noeviction"},
	} {
		at := slices.Index(redis.Command, setting[0])
		require.Positive(t, at, setting[0])
		require.Equal(t, setting[1], redis.Command[at+1])
	}
}

// The whole composition without Docker: a redis-server with its settings, the binary with the image's environment and the
// composition's over it, the health check with the same.
func TestTheCompositionStarts(t *testing.T) {
	redis, s := compose(t)
	server := redistest.Start(t, redis.Command[1:]...)
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
			value = "a-token"
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
	require.Eventually(t, func() bool { return healthy() == 0 }, startTime, 50*time.Millisecond, "it does not become healthy")
	server.Kill()
	require.Eventually(t, func() bool { return healthy() == 1 }, startTime, 50*time.Millisecond, "it is healthy without its store")
	code, _, stderr := ringback(t, env, "health", "--live")
	require.Zero(t, code, stderr)

	require.NoError(t, serve.Process.Signal(syscall.SIGTERM))
	select {
	case <-stopped:
		require.Zero(t, serve.ProcessState.ExitCode())
	case <-time.After(duration(t, s.StopGracePeriod)):
		t.Fatal("it does not stop within stop_grace_period")
	}
}
