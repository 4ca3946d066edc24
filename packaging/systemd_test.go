package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const unitPath = "systemd/ringback.service"

// unit parses a unit: section → key → values, in order. An empty value is kept, although systemd reads it as a reset.
func unit(t *testing.T) map[string]map[string][]string {
	t.Helper()
	sections := make(map[string]map[string][]string)
	section := ""
	for line := range strings.Lines(read(t, unitPath)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		require.False(t, strings.HasSuffix(line, `\`), "a continued line, which this test does not read: %s", line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSuffix(name, "]")
			require.NotContains(t, sections, section, "duplicate section")
			sections[section] = make(map[string][]string)
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		require.True(t, ok, line)
		require.NotEmpty(t, section, line)
		sections[section][key] = append(sections[section][key], value)
	}
	return sections
}

func TestUnit_RunsServeAndIsNotRestartedForInvalidSettings(t *testing.T) {
	service := unit(t)["Service"]
	args := strings.Fields(service["ExecStart"][0])
	requireFlags(t, args[1], args[2:])
	require.Equal(t, "/var/lib/"+service["StateDirectory"][0], service["WorkingDirectory"][0])
	for _, wrong := range []string{"--no-such-flag", "--grace=1ms", "--store=mysql://localhost"} {
		code, _, _ := ringback(t, nil, args[1], wrong)
		require.Equal(t, service["RestartPreventExitStatus"][0], strconv.Itoa(code), wrong)
	}
}

// A SIGHUP ends serve with 0, and a crash ends a Go program with the code of invalid settings.
func TestUnit_IsRestartedAfterSignalsAndCrashes(t *testing.T) {
	service := unit(t)["Service"]
	require.Equal(t, []string{"always"}, service["Restart"])
	require.Contains(t, service["Environment"], "GOTRACEBACK=crash")
	require.Equal(t, []string{"0"}, service["LimitCORE"])
}

// The port may not be open when systemctl returns: a unit of Type=exec counts as started then.
func TestUnit_InstallationWaitsForTheService(t *testing.T) {
	line := regexp.MustCompile(`(?m)^#   ringback health (--wait) \d+s$`).FindStringSubmatch(read(t, unitPath))
	require.NotNil(t, line)
	requireFlags(t, "health", line[1:])
}

func TestUnit_HasKnownSettings(t *testing.T) {
	service := unit(t)["Service"]
	settings := make(map[string]string)
	var names []string
	for _, pair := range service["Environment"] {
		name, value, ok := strings.Cut(pair, "=")
		require.True(t, ok, pair)
		settings[name] = value
		if name != "GOTRACEBACK" {
			names = append(names, name)
		}
	}
	requireSettings(t, names)
	require.True(t, strings.HasPrefix(settings["RINGBACK_STORE"], "sqlite:"+service["WorkingDirectory"][0]+"/"))
	credential, _, _ := strings.Cut(service["LoadCredential"][0], ":")
	require.Equal(t, "%d/"+credential, settings["RINGBACK_TOKEN_FILE"])
	require.Greater(t, duration(t, service["TimeoutStopSec"][0]), duration(t, settings["RINGBACK_GRACE"])+5*time.Second)
}

func TestUnit_EnvironmentFileHasValidExamples(t *testing.T) {
	example := regexp.MustCompile(`^#(RINGBACK_[A-Z_]+)=(\S+)$`)
	var names, env []string
	for line := range strings.Lines(read(t, "systemd/ringback.env")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		m := example.FindStringSubmatch(line)
		require.NotNil(t, m, "everything is a comment, so that the file changes nothing as it is: %s", line)
		names = append(names, m[1])
		env = append(env, m[1]+"="+m[2])
	}
	requireSettings(t, names)
	require.NotContains(t, names, "RINGBACK_TOKEN", "it contradicts the file that the unit names")

	// All values are accepted: the start fails because no server is there.
	i := slices.IndexFunc(env, func(pair string) bool { return strings.HasPrefix(pair, "RINGBACK_STORE=") })
	require.GreaterOrEqual(t, i, 0)
	env[i] = "RINGBACK_STORE=sqlite:/nowhere/ringback.db"
	env = append(env, "RINGBACK_ADDR=127.0.0.1:0")
	code, _, stderr := ringback(t, env, "serve")
	require.Equal(t, 1, code, stderr)
	require.Contains(t, stderr, "/nowhere", stderr)
}

// systemd-analyze checks the unit, where it is installed, as it is and with all comments enabled.
func TestUnit_PassesSystemdAnalyze(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not installed: misspelt keys of the unit are not found")
		return
	}
	// It looks for the program, which is not installed here.
	text := strings.ReplaceAll(read(t, unitPath), "/usr/local/bin/ringback", binary)
	commented := regexp.MustCompile(`(?m)^#([A-Z][A-Za-z]+=)`)
	require.Regexp(t, commented, text)
	for _, text := range []string{text, commented.ReplaceAllString(text, "$1")} {
		path := filepath.Join(t.TempDir(), "ringback.service")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", path).CombinedOutput()
		require.NoError(t, err, string(out))
		require.NotContains(t, string(out), path, "it takes the unit, and complains")

		// In tenths: at most 2.0 of 10.
		out, err = exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--no-pager",
			"--threshold=20", path).CombinedOutput()
		require.NoError(t, err, string(out))
	}
}
