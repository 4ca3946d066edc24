package packaging

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An instruction of a Dockerfile: FROM, and the rest of its line, continued lines joined.
type instruction struct{ name, rest string }

// dockerfile reads the instructions of the Dockerfile.
func dockerfile(t *testing.T) []instruction {
	t.Helper()
	var all []instruction
	joined := ""
	for line := range strings.Lines(read(t, "../Dockerfile")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		part, more := strings.CutSuffix(line, `\`)
		joined += part
		if more {
			continue
		}
		name, rest, _ := strings.Cut(joined, " ")
		all = append(all, instruction{name, strings.TrimSpace(rest)})
		joined = ""
	}
	require.Empty(t, joined, "the last instruction has no end")
	return all
}

// lastStage are the instructions of the image itself.
func lastStage(t *testing.T) []instruction {
	t.Helper()
	all := dockerfile(t)
	from := 0
	for i, in := range all {
		if in.name == "FROM" {
			from = i
		}
	}
	return all[from:]
}

// the gives the one instruction of a name.
func the(t *testing.T, all []instruction, name string) string {
	t.Helper()
	var found []string
	for _, in := range all {
		if in.name == name {
			found = append(found, in.rest)
		}
	}
	require.Len(t, found, 1, name)
	return found[0]
}

// words reads the exec form.
func words(t *testing.T, text string) []string {
	t.Helper()
	var all []string
	require.NoError(t, json.Unmarshal([]byte(text), &all), "%s is not of the exec form, and there is no shell", text)
	require.NotEmpty(t, all)
	return all
}

// imageEnv is the environment of the image.
func imageEnv(t *testing.T) []string {
	t.Helper()
	return strings.Fields(the(t, lastStage(t), "ENV"))
}

func TestTheDockerfileKeepsToInstructionsThatAreSafe(t *testing.T) {
	known := []string{
		"FROM", "ARG", "LABEL", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK",
		"ENTRYPOINT", "CMD",
	}
	for _, in := range dockerfile(t) {
		require.Contains(t, known, in.name, "in particular no ADD, which fetches and unpacks")
		require.NotRegexp(t, `(?i)\b(sudo|curl|wget|apt-get|apk)\b`, in.rest)
		if in.name == "WORKDIR" {
			require.True(t, path.IsAbs(in.rest), in.rest)
		}
		if in.name == "ARG" || in.name == "ENV" {
			require.NotRegexp(t, `(?i)(token|secret|passw)`, in.rest, "it would stay in the image")
		}
	}
}

func TestTheBasesOfTheImageArePinned(t *testing.T) {
	pinned := regexp.MustCompile(`^(--platform=\$BUILDPLATFORM )?([a-z/]+):(\d+\.\d+\.\d+)( AS [a-z]+)$`)
	var bases []string
	for _, in := range dockerfile(t) {
		if in.name == "FROM" {
			bases = append(bases, in.rest)
		}
	}
	require.Len(t, bases, 2)
	require.Regexp(t, pinned, bases[0])
	require.Equal(t, "scratch", bases[1], "no shell")

	wanted := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))
	require.NotNil(t, wanted)
	require.Contains(t, bases[0], "golang:"+wanted[1]+".")
}

func TestTheImageRunsTheBinaryAsNobodyWithoutAShell(t *testing.T) {
	image := lastStage(t)
	require.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, the(t, image, "USER"), "a number, which orchestrators can tell from root")
	require.Equal(t, "SIGTERM", the(t, image, "STOPSIGNAL"))
	require.Equal(t, "/data", the(t, image, "VOLUME"))
	require.Equal(t, []string{"/ringback"}, words(t, the(t, image, "ENTRYPOINT")))
	require.False(t, slices.ContainsFunc(image, func(in instruction) bool { return in.name == "RUN" }), "there is nothing to run it")
	require.True(t, slices.ContainsFunc(image, func(in instruction) bool {
		return in.name == "COPY" && strings.Contains(in.rest, "--chown="+the(t, image, "USER")) && strings.HasSuffix(in.rest, " /data")
	}), "its user owns the database's folder")
	require.True(t, slices.ContainsFunc(image, func(in instruction) bool {
		return in.name == "COPY" && strings.HasSuffix(in.rest, " /etc/ssl/certs/") && strings.Contains(in.rest, "ca-certificates.crt")
	}), "receivers are called over TLS")

	cmd := words(t, the(t, image, "CMD"))
	require.Equal(t, "serve", cmd[0])
	requireFlags(t, "serve", cmd[1:])
}

func TestTheHealthCheckOfTheImageIsTheBinary(t *testing.T) {
	options, check, ok := strings.Cut(the(t, lastStage(t), "HEALTHCHECK"), " CMD ")
	require.True(t, ok)
	args := words(t, check)
	require.Equal(t, []string{"/ringback", "health"}, args[:2])
	requireFlags(t, "health", args[2:])
	given := make(map[string]string)
	for option := range strings.FieldsSeq(options) {
		name, value, _ := strings.Cut(option, "=")
		given[name] = value
	}
	require.Greater(t, duration(t, given["--timeout"]), duration(t, "3s"), "the binary says why before it is cut off")
	require.Greater(t, duration(t, given["--interval"]), duration(t, given["--timeout"]))
	require.NotZero(t, duration(t, given["--start-period"]))
}

func TestTheEnvironmentOfTheImageIsOneOfServe(t *testing.T) {
	var names []string
	for _, pair := range imageEnv(t) {
		name, value, ok := strings.Cut(pair, "=")
		require.True(t, ok)
		names = append(names, name)
		if name == "RINGBACK_STORE" {
			require.True(t, strings.HasPrefix(value, "sqlite:/data/"), "in the volume")
		}
		if name == "RINGBACK_ADDR" {
			require.True(t, strings.HasSuffix(value, ":"+the(t, lastStage(t), "EXPOSE")), value)
		}
	}
	requireSettings(t, names)
	require.Subset(t, names, []string{"RINGBACK_ADDR", "RINGBACK_STORE"})
}

func TestTheImageIsBuiltFromFilesThatAreNotIgnored(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Dir,Module,GoFiles,EmbedFiles", "./cmd/ringback")
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	root, err := filepath.Abs("..")
	require.NoError(t, err)

	files := []string{"go.mod", "go.sum"}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct {
			Dir                 string
			Module              *struct{ Main bool }
			GoFiles, EmbedFiles []string
		}
		require.NoError(t, dec.Decode(&p))
		if p.Module == nil || !p.Module.Main {
			continue
		}
		dir, err := filepath.Rel(root, p.Dir)
		require.NoError(t, err)
		for _, file := range slices.Concat(p.GoFiles, p.EmbedFiles) {
			files = append(files, path.Join(filepath.ToSlash(dir), file))
		}
	}
	require.Greater(t, len(files), 50)
	for _, file := range files {
		require.False(t, ignored(t, file), file)
	}
	for _, file := range []string{".env", ".git/config", "a/b.db", "ringback.db-wal", "compose.yaml", "job/job_test.go"} {
		require.True(t, ignored(t, file), file)
	}
}

// ignored reports whether .dockerignore names a file or a folder above it. Of its patterns it knows those that are in use:
// without "**/" from the root, with it at any depth, * within a name.
func ignored(t *testing.T, file string) bool {
	t.Helper()
	for pattern := range strings.Lines(read(t, "../.dockerignore")) {
		pattern = strings.TrimSpace(pattern)
		if pattern == "" || pattern[0] == '#' {
			continue
		}
		pattern, anywhere := strings.CutPrefix(pattern, "**/")
		require.NotRegexp(t, `[!/]|\*\*`, pattern, "a pattern that this test does not know")
		parts := strings.Split(file, "/")
		if !anywhere {
			parts = parts[:1]
		}
		for _, part := range parts {
			match, err := path.Match(pattern, part)
			require.NoError(t, err)
			if match {
				return true
			}
		}
	}
	return false
}
