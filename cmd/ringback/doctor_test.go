package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/doctor"
)

// resolveOnLoopback makes all lookups ask a resolver of the test, which knows no name.
func resolveOnLoopback(t *testing.T) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		for query := make([]byte, 1<<10); ; {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			query[2] |= 0x80 // an answer
			query[3] = query[3]&0xf0 | 3
			_, _ = server.WriteTo(query[:n], from)
		}
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = before; _ = server.Close() })
}

// examine runs ringback doctor and returns its findings by check.
func examine(
	t *testing.T, env []string, args ...string,
) (code int, findings map[doctor.Name]doctor.Finding, stderr string) {
	t.Helper()
	resolveOnLoopback(t)
	code, stdout, stderr := try(t, env, append([]string{"doctor", "-o", "json"}, args...)...)
	var all []doctor.Finding
	require.NoError(t, json.Unmarshal([]byte(stdout), &all), stdout)
	findings = make(map[doctor.Name]doctor.Finding)
	for _, f := range all {
		if before, twice := findings[f.Check]; twice {
			f.Seen = before.Seen + "\n" + f.Seen
		}
		findings[f.Check] = f
		require.Contains(t, doctor.Checks, f.Check)
	}
	return code, findings, stderr
}

// nobody returns a URL at which no service runs.
func nobody(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	return server.URL
}

func TestDoctor_NeedsNoServiceAndNoData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	addr := strings.TrimPrefix(nobody(t), "http://")
	// RINGBACK_SERVER is the server of the client commands.
	code, found, stderr := examine(t, []string{"RINGBACK_STORE=sqlite:" + path, "RINGBACK_ADDR=" +
		addr, "RINGBACK_SERVER=" + nobody(t)}, "--proxy=none")
	require.Equal(t, exitOK, code, "%v%s", found, stderr)
	require.Empty(t, stderr)
	require.Equal(t, doctor.OK, found[doctor.SettingsValid].Level)
	require.Equal(t, doctor.OK, found[doctor.SettingsDNS].Level, found[doctor.SettingsDNS])
	require.Equal(t, doctor.Unknown, found[doctor.ServerReady].Level)
	require.Equal(t, "server http://"+addr, found[doctor.ServerReady].Subject)
	require.Equal(t, "store main (sqlite:"+path+")", found[doctor.SQLiteFiles].Subject)
	require.Contains(t, found[doctor.SQLiteFiles].Seen, "does not exist yet")
	require.NoFileExists(t, path)
}

func TestDoctor_ExaminesSettingsThatServeRefuses(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("short"), 0o600))
	require.NoError(t, os.Chmod(token, 0o666))
	file := writeConfig(t, "grace: 9h", "token_file: "+token)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://collector.example")
	server := miniredis.RunT(t)
	code, found, stderr := examine(t, nil, "--config", file, "--store=redis://user:pass@"+server.Addr(),
		"--ca-file=/nowhere.pem", "--max-body=0", "--server="+nobody(t))
	require.Equal(t, exitFault, code)
	require.Contains(t, stderr, "there are faults")
	seen := found[doctor.SettingsValid].Seen
	require.Equal(t, doctor.Fault, found[doctor.SettingsValid].Level)
	for _, says := range []string{"max-body: 0 B", "token-file: " + token +
		" is writable", "ca-file: ", "grace: 9h0m0s is not between", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		require.Contains(t, seen, says)
	}
	require.Contains(t, seen, file+":1: grace: ", "the line")
	require.Equal(t, doctor.Fault, found[doctor.ServerReady].Level, "a named server must answer")
	require.Equal(t, doctor.Fault, found[doctor.RedisReach].Level)
	for _, f := range found {
		require.NotContains(t, f.Subject+f.Seen, "pass@")
	}
}

func TestDoctor_DistinguishesUnreadableSecretsFromNone(t *testing.T) {
	store, service := "--store=sqlite:"+filepath.Join(t.TempDir(), "jobs.db"), "--server="+nobody(t)
	const noToken, noKey = "needs no token", "there is no secret key"
	_, found, _ := examine(t, nil, store, service, "--addr=0.0.0.0:8080")
	require.Contains(t, found[doctor.SettingsListen].Seen, noToken)
	require.Contains(t, found[doctor.SettingsSecrets].Seen, noKey)
	_, found, _ = examine(t, nil, store, service, "--addr=0.0.0.0:8080", "--token-file=/nowhere/token",
		"--secret-key-file=/nowhere/key")
	require.NotContains(t, found[doctor.SettingsListen].Seen, noToken)
	require.NotContains(t, found[doctor.SettingsSecrets].Seen, noKey)
	require.Contains(t, found[doctor.SettingsSecrets].Seen, "/nowhere/key")
}

func TestDoctor_PrintsATable(t *testing.T) {
	resolveOnLoopback(t)
	code, stdout, _ := try(t, nil, "doctor", "--store=redis://127.0.0.1:1", "--addr=127.0.0.1:0")
	require.Equal(t, exitFault, code)
	require.Contains(t, stdout, "\nstore main (redis://127.0.0.1:1/0)\n  FAULT    redis-reach        ")
	require.Contains(t, stdout, "to do: Start Redis")
	require.NotContains(t, stdout, "server-ready", "the port is not known")
}

func TestDoctor_RefusesBadInput(t *testing.T) {
	for says, args := range map[string][]string{
		"--output must be one of":  {"-o", "xml"},
		"server: must be a URL":    {"--server", "ringback.internal"},
		"unknown flag --frobnicat": {"--frobnicate"},
	} {
		code, stdout, stderr := try(t, nil, append([]string{"doctor"}, args...)...)
		require.Equal(t, exitUsage, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, says)
	}
}
