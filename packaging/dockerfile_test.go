package packaging

import (
	"bytes"
	"encoding/json"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dockerfile returns the arguments of each instruction of a name, continued lines joined.
func dockerfile(t *testing.T, name string) []string {
	t.Helper()
	return instructions(strings.ReplaceAll(read(t, "../Dockerfile"), "\\\n", " "), name)
}

func instructions(text, name string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^`+name+` +(.*)$`).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// image is dockerfile for the last stage, which is the image.
func image(t *testing.T, name string) []string {
	t.Helper()
	text := strings.ReplaceAll(read(t, "../Dockerfile"), "\\\n", " ")
	return instructions(text[strings.LastIndex(text, "\nFROM "):], name)
}

// onlyInstruction returns the arguments of the image's only instruction of a name.
func onlyInstruction(t *testing.T, name string) string {
	t.Helper()
	found := image(t, name)
	require.Len(t, found, 1, name)
	return found[0]
}

// words parses the exec form.
func words(t *testing.T, text string) []string {
	t.Helper()
	var all []string
	require.NoError(t, json.Unmarshal([]byte(text), &all), "%s is not of the exec form, and there is no shell", text)
	require.NotEmpty(t, all)
	return all
}

// imageEnv returns the environment of the image.
func imageEnv(t *testing.T) []string {
	t.Helper()
	return strings.Fields(onlyInstruction(t, "ENV"))
}

func TestImage_ContainsNoSecretsAndPinsItsBase(t *testing.T) {
	require.Empty(t, dockerfile(t, "ADD"), "it fetches and unpacks")
	for _, kept := range slices.Concat(dockerfile(t, "ARG"), dockerfile(t, "ENV")) {
		require.NotRegexp(t, `(?i)(token|secret|passw)`, kept, "it would stay in the image")
	}
	wanted := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))
	require.NotNil(t, wanted)
	require.Regexp(t, `golang:`+regexp.QuoteMeta(wanted[1])+`\.\d+ AS `, dockerfile(t, "FROM")[0],
		"the Go of go.mod, to the patch")
}

func TestImage_RunsTheBinaryUnprivilegedWithoutAShell(t *testing.T) {
	user, entry := onlyInstruction(t, "USER"), words(t, onlyInstruction(t, "ENTRYPOINT"))
	require.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, user, "a number, which orchestrators can distinguish from root")
	copied := strings.Join(image(t, "COPY"), "\n")
	require.Regexp(t, `(?m)--chown=`+user+` \S+ `+onlyInstruction(t, "VOLUME")+`$`, copied,
		"its user owns the database's folder")
	require.Regexp(t, `(?m)ca-certificates\.crt /etc/ssl/certs/$`, copied, "receivers are called over TLS")
	require.Regexp(t, `(?m) `+entry[0]+`$`, copied)
	cmd := words(t, onlyInstruction(t, "CMD"))
	requireFlags(t, cmd[0], cmd[1:])

	options, check, ok := strings.Cut(onlyInstruction(t, "HEALTHCHECK"), " CMD ")
	require.True(t, ok)
	args := words(t, check)
	require.Equal(t, entry, args[:1])
	requireFlags(t, args[1], args[2:])
	timeout := regexp.MustCompile(`--timeout=(\S+)`).FindStringSubmatch(options)
	require.NotNil(t, timeout)
	_, help, _ := ringback(t, nil, args[1], "--help")
	own := regexp.MustCompile(`default\s+(\d+s),\s+\$RINGBACK_HEALTH_TIMEOUT`).FindStringSubmatch(help)
	require.NotNil(t, own, help)
	require.Greater(t, duration(t, timeout[1]), duration(t, own[1]), "the binary says why before it is cut off")
}

func TestImage_EnvironmentHasSettingsOfServe(t *testing.T) {
	env := make(map[string]string)
	for _, pair := range imageEnv(t) {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	requireSettings(t, slices.Collect(maps.Keys(env)))
	require.True(t, strings.HasPrefix(env["RINGBACK_STORE"], "sqlite:"+onlyInstruction(t, "VOLUME")+"/"))
	require.True(t, strings.HasSuffix(env["RINGBACK_ADDR"], ":"+onlyInstruction(t, "EXPOSE")))
}

func TestImage_NeedsNoIgnoredFiles(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps",
		"-json=Dir,Module,GoFiles,EmbedFiles", "./cmd/ringback")
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
		require.False(t, isIgnored(t, file), file)
	}
	for _, file := range []string{
		".env", ".git/config", "a/b.db", "ringback.db-wal", "compose.yaml", "job/job_test.go",
	} {
		require.True(t, isIgnored(t, file), file)
	}
}

// isIgnored reports whether .dockerignore names a file or a folder above it. It supports the patterns in use: without
// "**/" from the root, with it at any depth, * within a name.
func isIgnored(t *testing.T, file string) bool {
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
