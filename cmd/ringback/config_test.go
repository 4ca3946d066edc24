package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// writeConfig writes a configuration file and returns its path.
func writeConfig(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ringback.yaml")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	return path
}

// inForce returns the settings that ringback config prints: the value and the source of each.
func inForce(t *testing.T, env []string, args ...string) map[string][2]string {
	t.Helper()
	code, stdout, stderr := try(t, env, append([]string{"config"}, args...)...)
	require.Equal(t, exitOK, code, stderr)
	got := make(map[string][2]string)
	for line := range strings.Lines(stdout) {
		setting, from, _ := strings.Cut(strings.TrimSpace(line), "# ")
		name, value, _ := strings.Cut(setting, ": ")
		got[name] = [2]string{strings.TrimSpace(value), from}
	}
	return got
}

func TestConfig_FlagsOverrideVariablesAndTheseTheFile(t *testing.T) {
	file := writeConfig(t, "# who wins", "addr: 127.0.0.1:1", "grace: 31s", "max_body: 2MiB", "log: json")
	got := inForce(t, []string{"RINGBACK_ADDR=127.0.0.1:2", "RINGBACK_GRACE=32s"}, "--config",
		file, "--addr=127.0.0.1:3")
	require.Equal(t, [2]string{"127.0.0.1:3", "--addr"}, got["addr"])
	require.Equal(t, [2]string{"32s", "$RINGBACK_GRACE"}, got["grace"])
	require.Equal(t, [2]string{"2MiB", file + ":4"}, got["max_body"])
	require.Equal(t, [2]string{"json", file + ":5"}, got["log"])
	require.Equal(t, [2]string{"auto", "default"}, got["topics"])
	require.NotContains(t, got, "proxy", "it has no value")
	require.Equal(t, got["log"], inForce(t, []string{"RINGBACK_CONFIG=" + file})["log"])
}

func TestConfig_ReadsListsAndMappings(t *testing.T) {
	file := writeConfig(t,
		"store: {main: 'redis://:pa55@cache:6379/0', eu: 'redis://eu'}", "shards: {main: 4, eu: 16}", "allow_targets:",
		"- 10.1.0.0/16", "- shop.internal", "deny_targets: evil.example,10.9.9.9",
		"redis_wait: {replicas: 1, fsync: true}", "roles: [worker, api]", "allow_private: yes")
	got := inForce(t, []string{"RINGBACK_TOKEN=t0ken-0123456789"}, "--config="+file)
	for name, want := range map[string]string{
		"store": "main=redis://:xxxxx@cache:6379/0 eu=redis://eu:6379/0", "shards": "eu=16,main=4",
		"allow_targets": "[10.1.0.0/16, shop.internal]", "deny_targets": "[evil.example, 10.9.9.9]",
		"redis_wait": "replicas=1,fsync,timeout=100ms", "roles": "worker,api", "allow_private": "true",
	} {
		require.Equal(t, want, got[name][0], name)
	}
	_, stdout, _ := try(t, []string{"RINGBACK_TOKEN=t0ken-0123456789"}, "config", "--config", file)
	require.Contains(t, stdout, "# RINGBACK_TOKEN is set")
	require.NotContains(t, stdout, "t0ken")
	require.NotContains(t, stdout, "pa55")
}

func TestConfig_PrintsAFileThatMeansTheSame(t *testing.T) {
	args := []string{
		"--max-body=3MiB", "--allow-targets=10.0.0.0/8,*.lan.example", "--shards=4", "--store=redis://a/1",
		"--redis-wait=replicas=2", "--no-auth",
	}
	_, printed, _ := try(t, nil, append([]string{"config"}, args...)...)
	again := inForce(t, nil, "--config", writeConfig(t, printed))
	for name, value := range inForce(t, nil, args...) {
		require.Equal(t, value[0], again[name][0], name)
	}
}

func TestConfig_NamesEveryFaultWithItsLine(t *testing.T) {
	file := writeConfig(t,
		"stroe: x", "max-body: 1MiB", "max_body: 1XB", "grace: 40s", "grace: 30s", "log: xml", "token: abc",
		"no_auth: maybe", "proxy:", "allow_targets: [[a]]", "inbox: 127.0.0.1:1", "check: true", "config: other.yaml")
	code, stdout, stderr := try(t, nil, "serve", "--check", "--config", file)
	require.Equal(t, exitUsage, code)
	require.Empty(t, stdout)
	for line, fault := range map[string]string{
		":1: ": "stroe: is not a setting: ringback serve --help lists them; did you mean store?",
		":2: ": "max-body: is written max_body",
		":3: ": `max_body: "1XB" is not a size`, ":5: ": "grace: is set twice, also in line 4",
		":6: ": `log: "xml" is not text or json`, ":7: ": "token: is a secret", ":8: ": "no_auth: bool value must be",
		":9: ":  "proxy: has no value",
		":10: ": "allow_targets: has a list", ":12: ": "check: is not a setting", ":13: ": "config: is not a setting",
	} {
		require.Contains(t, stderr, "ringback: "+file+line+fault)
	}
	require.NotContains(t, stderr, ":11: ", "inbox is a setting of dev")
}

func TestConfig_FaultsOfMeaningNameTheirLine(t *testing.T) {
	file := writeConfig(t, "addr: 0.0.0.0", "grace: 0s", "max_body: 20MiB", "drain: 10h")
	_, _, stderr := try(t, nil, "serve", "--config", file)
	require.Contains(t, stderr, "ringback: "+file+":2: grace: 0s is not between")
	_, _, stderr = try(t, []string{"RINGBACK_GRACE=1m"}, "serve", "--config", file, "--max-body=30MiB")
	require.Contains(t, stderr, "ringback: "+file+`:1: addr: "0.0.0.0" is not host:port`)
	require.Contains(t, stderr, "ringback: "+file+":4: drain: 10h0m0s is not between")
	require.Contains(t, stderr, "ringback: max-body: 31457280 B is not between", "it is from the command line")
}

func TestConfig_RefusesFilesThatAreNone(t *testing.T) {
	for text, why := range map[string]string{
		"- a":                          ":1: must have a setting a line",
		"addr: [":                      "yaml: line 1",
		strings.Repeat("#", 1<<20+1):   "is larger than 1048576 bytes",
		"\xff\xfea\x00:\x00 \x001\x00": "is in UTF-16",
		"a\x00:\x00 \x001\x00":         "is in UTF-16",
		"a: &a [*a]":                   "a: is not a setting",
		"addr: {a: 1}\nstore: &s [*s]": "store: has a list",
	} {
		code, _, stderr := try(t, nil, "serve", "--check", "--config", writeConfig(t, text))
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, why)
	}
	code, _, stderr := try(t, nil, "serve", "--config", filepath.Join(t.TempDir(), "none.yaml"))
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "none.yaml: no such file or directory")
}

func TestConfig_FileInTheWorkingDirectoryIsTheDefault(t *testing.T) {
	t.Chdir(filepath.Dir(writeConfig(t, "grace: 33s")))
	require.Equal(t, [2]string{"33s", "ringback.yaml:1"}, inForce(t, nil)["grace"])
	code, _, _ := try(t, nil, "version")
	require.Equal(t, exitOK, code)
	require.NoError(t, os.WriteFile(defaultConfigFile, []byte("# nothing is set\n"), 0o600))
	require.Equal(t, "default", inForce(t, nil)["grace"][1])
	require.NoError(t, os.WriteFile(defaultConfigFile, []byte("x: 1"), 0o600))
	code, _, stderr := try(t, nil, "backup", "--to", "copy.db")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "ringback.yaml:1: x: is not a setting")
}

func TestCheck_OpensNothing(t *testing.T) {
	dir := t.TempDir()
	file := writeConfig(t, "store: sqlite:"+filepath.Join(dir, "a.db"))
	code, stdout, _ := try(t, nil, "serve", "--check", "--config", file)
	require.Equal(t, exitOK, code)
	require.Equal(t, "the settings are valid\n", stdout)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
	_, _, stderr := try(t, []string{"RINGBACK_CHECK=true"}, "config")
	require.Contains(t, stderr, "variables=[RINGBACK_CHECK]", "it has no variable")
	code, _, stderr = try(t, nil, "serve", "--check", "--token-file", filepath.Join(dir, "none"))
	require.Equal(t, exitUsage, code, stderr)
	file = writeConfig(t, "grace: 30s", "ca_file: "+filepath.Join(dir, "none.pem"))
	code, _, stderr = try(t, nil, "serve", "--check", "--config", file)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, file+":2: ca-file: ")
}

func TestCheck_SaysWhereTracesGo(t *testing.T) {
	for _, name := range []string{
		"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"OTEL_EXPORTER_OTLP_ENDPOINT",
	} {
		t.Setenv(name, "")
	}
	_, stdout, _ := try(t, nil, "config")
	require.Contains(t, stdout, "# traces: off\n")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:pa55@collector:4318")
	_, stdout, _ = try(t, nil, "config")
	require.Contains(t, stdout,
		"# traces: to http://user:xxxxx@collector:4318/v1/traces (OTEL_EXPORTER_OTLP_ENDPOINT)\n")
	code, stdout, _ := try(t, nil, "serve", "--check")
	require.Equal(t, exitOK, code)
	require.Contains(t, stdout, "the settings are valid\ntraces are exported to http://user:xxxxx@collector")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	for _, args := range [][]string{{"serve", "--check"}, {"serve"}, {"dev", "--inbox=127.0.0.1:0"}, {"config"}} {
		code, _, stderr := try(t, nil, args...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, "ringback: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf")
	}
}
