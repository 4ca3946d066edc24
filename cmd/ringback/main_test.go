package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/cli"
	"github.com/ringback/ringback/internal/app"
	"github.com/ringback/ringback/internal/testkit"
)

// try runs a command line that ends without a signal.
func try(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs testkit.Log
	code = run(t.Context(), args, &out, &errs, env)
	return code, out.String(), errs.String()
}

func TestHelp_GoesToStdout(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"serve", "--help"}, {"version"}} {
		code, stdout, stderr := try(t, nil, args...)
		require.Equal(t, exitOK, code)
		require.NotEmpty(t, stdout)
		require.Empty(t, stderr)
	}
}

func TestVersion_IsAFlagToo(t *testing.T) {
	_, want, _ := try(t, nil, "version")
	code, stdout, stderr := try(t, nil, "--version")
	require.Equal(t, exitOK, code)
	require.Equal(t, want, stdout)
	require.Empty(t, stderr)
	_, _, stderr = try(t, []string{"RINGBACK_VERSION=1"}, "serve", "--check")
	require.Contains(t, stderr, "variables=[RINGBACK_VERSION]", "it has no variable")
}

func TestHelp_NamesEveryVariable(t *testing.T) {
	_, stdout, _ := try(t, nil, "serve", "--help")
	for _, name := range []string{
		"ADDR", "STORE", "SHARDS", "ROLES", "ALLOW_PRIVATE", "ALLOW_TARGETS", "TOPICS", "MAX_BODY", "GRACE", "DRAIN",
		"LOG", "NO_AUTH", "TOKEN_FILE", "TOKEN", "METRICS_TOKEN_FILE", "DENY_TARGETS", "PROXY", "CA_FILE",
		"SECRET_KEY_FILE", "SECRET_KEY",
	} {
		require.Contains(t, stdout, "RINGBACK_"+name)
	}
}

// parsed returns serve's flags for a command line and an environment.
func parsed(t *testing.T, environ []string, args ...string) serveCommand {
	t.Helper()
	var cli commands
	parser, err := kong.New(&cli, kong.Resolvers(&settings{env: readEnvironment(environ), from: map[string]string{}}))
	require.NoError(t, err)
	_, err = parser.Parse(append([]string{"serve"}, args...))
	require.NoError(t, err)
	return cli.Serve
}

func TestFlags_OverrideTheEnvironmentAndDefaults(t *testing.T) {
	env := []string{
		"RINGBACK_ADDR=127.0.0.1:1", "RINGBACK_MAX_BODY=1MiB", "RINGBACK_NO_AUTH=true",
		"RINGBACK_GRACE=", "HOME=/",
	}
	c := parsed(t, env, "--addr=127.0.0.1:2")
	require.Equal(t, "127.0.0.1:2", c.Addr)
	require.Equal(t, byteSize(1<<20), c.MaxBody)
	require.True(t, c.NoAuth)
	require.Equal(t, "30s", c.Grace.String(), "an empty variable is unset")
	require.Equal(t, []string{"sqlite:ringback.db"}, c.Store)
}

func TestFlags_ParseStores(t *testing.T) {
	sentinel := "eu=redis+sentinel://a,b:2/4?master_name=shop"
	for _, c := range []serveCommand{
		parsed(t, []string{"RINGBACK_STORE=main=sqlite:a b.db " + sentinel}),
		parsed(t, []string{"RINGBACK_STORE=sqlite:x", "RINGBACK_SHARDS=1"}, "--store=sqlite:a "+
			"b.db", "--store", sentinel, "--shards=eu=16"),
	} {
		o, err := c.options(&process{stderr: io.Discard}, false, nil)
		require.NoError(t, err)
		require.Contains(t, []string{"main=sqlite:a b.db " + sentinel, "sqlite:a b.db\n" + sentinel}, o.Store)
	}
	require.Equal(t, app.Shards{"main": 1, "eu": 16}, parsed(t, []string{"RINGBACK_SHARDS=main=1,eu=16"}).Shards)
	require.Equal(t, app.Shards{"main": 4}, parsed(t, []string{"RINGBACK_SHARDS=4"}, "--store=redis://a").Shards)
	code, _, stderr := try(t, nil, "serve", "--store=main=redis://a", "--store=main=redis://b")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "store: two stores have the name main")
	code, _, stderr = try(t, []string{"RINGBACK_STORE=main=sqlite:a eu=sqlite:b"}, "backup", "--to=c")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr,
		"store: several are configured, and each is copied by itself: pass one, as in --store sqlite:FILE")
}

func TestFlags_ParseListsOfTargets(t *testing.T) {
	c := parsed(t, []string{"RINGBACK_ALLOW_TARGETS=10.1.2.3/8,*.shop.internal", "RINGBACK_DENY_TARGETS=evil.example"})
	require.Equal(t, []string{"10.1.2.3/8", "*.shop.internal"}, c.AllowTargets)
	require.Equal(t, []string{"evil.example"}, c.DenyTargets)
	c = parsed(t, nil, "--allow-targets=192.168.1.7,::1", "--allow-targets=10.0.0.0/8")
	require.Equal(t, []string{"192.168.1.7", "::1", "10.0.0.0/8"}, c.AllowTargets)
}

func TestFlags_ParseRolesInAnyOrder(t *testing.T) {
	for text, want := range map[string]app.Roles{
		"":            {app.RoleAPI, app.RoleWorker},
		"api":         {app.RoleAPI},
		"worker":      {app.RoleWorker},
		"worker, api": {app.RoleWorker, app.RoleAPI},
	} {
		require.Equal(t, want, parsed(t, []string{"RINGBACK_ROLES=" + text}).Roles, text)
	}
	for _, text := range []string{"", ",", "api,", "carrier", "API"} {
		code, _, stderr := try(t, nil, "serve", "--roles="+text)
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, "is not api, worker or api,worker")
	}
}

func TestByteSize_ParsesUnits(t *testing.T) {
	for text, want := range map[string]byteSize{
		"0": 0, "17": 17, "17B": 17, "256KiB": 256 << 10, "3MiB": 3 << 20, "1GiB": 1 << 30,
	} {
		var b byteSize
		require.NoError(t, b.UnmarshalText([]byte(text)))
		require.Equal(t, want, b)
	}
	for _, text := range []string{"", "KiB", "-1", "1KB", "1.5MiB", "9223372036854775807KiB"} {
		require.Error(t, new(byteSize).UnmarshalText([]byte(text)), text)
	}
}

// foreign are variables that an application sets for itself, and those that Kubernetes sets beside Services.
var foreign = []string{
	"RINGBACK_URL=https://ringback.internal", "RINGBACK_STROE=x", "RINGBACK_TOKEN=z0123456789abcdef",
	"RINGBACK_SERVICE_HOST=10.0.0.9", "RINGBACK_SERVICE_PORT=8080", "RINGBACK_SERVICE_PORT_HTTP=8080",
	"RINGBACK_PORT=tcp://10.0.0.9:8080", "RINGBACK_PORT_8080_TCP=tcp://10.0.0.9:8080",
	"RINGBACK_PORT_8080_TCP_PROTO=tcp", "RINGBACK_PORT_8080_TCP_PORT=8080",
	"RINGBACK_PORT_8080_TCP_ADDR=10.0.0.9", "RINGBACK_API_PORT=tcp://10.0.0.8:80", "RINGBACK_API_SERVICE_HOST=10.0.0.8",
}

func TestEnvironment_WarnsOfUnknownVariables(t *testing.T) {
	for format, line := range map[string]string{
		"text": `level=WARN msg="variables are no settings and have no effect: correct or remove them" ` +
			`hints="[RINGBACK_STROE: did you mean RINGBACK_STORE?]" variables="[RINGBACK_STROE RINGBACK_URL]"`,
		"json": `"hints":["RINGBACK_STROE: did you mean RINGBACK_STORE?"],` +
			`"variables":["RINGBACK_STROE","RINGBACK_URL"]`,
	} {
		code, _, stderr := try(t, foreign, "serve", "--check", "--log="+format)
		require.Equal(t, exitOK, code, stderr)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		require.Contains(t, stderr, line)
	}
	_, _, stderr := try(t, []string{"RINGBACK_PORT=8080"}, "serve", "--check")
	require.Contains(t, stderr, "RINGBACK_PORT", "it is not that of a link, but meant for --addr")
}

func TestEnvironment_OfAnotherProgramStopsNoCommand(t *testing.T) {
	away := append(slices.Clone(foreign), "RINGBACK_SERVER=http://127.0.0.1:1", "RINGBACK_ADDR=127.0.0.1:1")
	for command, want := range map[string]int{
		"version": exitOK, "completion bash": exitOK, "health": exitFault, "stats": int(cli.Unavailable),
		"check": int(cli.CheckCritical),
	} {
		code, _, stderr := try(t, away, strings.Fields(command)...)
		require.Equal(t, want, code, "%s: %s", command, stderr)
		require.NotContains(t, stderr, "variables", command)
	}
}

func TestEnvironment_ErrorsNameTheVariable(t *testing.T) {
	t.Chdir(t.TempDir()) // a store may be made before a file is read
	for name, command := range map[string]string{
		"RINGBACK_ADDR": "serve", "RINGBACK_GRACE": "serve", "RINGBACK_LOG": "serve", "RINGBACK_ROLES": "serve",
		"RINGBACK_TOKEN_FILE": "serve", "RINGBACK_CA_FILE": "serve", "RINGBACK_CONFIG": "serve",
		"RINGBACK_STORE": "verify", "RINGBACK_HEALTH_TIMEOUT": "health",
		"RINGBACK_INBOX": "listen", "RINGBACK_INBOX_KEYS_FILE": "listen",
	} {
		code, _, stderr := try(t, []string{name + "=tcp://10.0.0.9:8080"}, command)
		require.NotEqual(t, exitOK, code, name)
		require.Contains(t, stderr, "ringback: $"+name+": ")
	}
	_, _, stderr := try(t, []string{"RINGBACK_ADDR=tcp://10.0.0.9:8080"}, "health")
	require.Equal(t, "ringback: $RINGBACK_ADDR: addr: \"tcp://10.0.0.9:8080\" is not host:port\n", stderr)
}

func TestSecret_HasOneSource(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("from-a-file\n"), 0o600))
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))

	read := func(value, file string) (string, error) {
		return secret("token", tokenVariable, "--token-file", value, file, slog.New(slog.DiscardHandler))
	}
	token, err := read("", file)
	require.NoError(t, err)
	require.Equal(t, "from-a-file", token)

	token, err = read("from-the-environment", "")
	require.NoError(t, err)
	require.Equal(t, "from-the-environment", token)

	_, err = read("too", file)
	require.ErrorContains(t, err, "RINGBACK_TOKEN cannot be combined with --token-file")
	_, err = read("", empty)
	require.ErrorContains(t, err, "read the token")
	require.ErrorContains(t, err, "is empty")
}

func TestSecret_RejectsAFileWritableByOthers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	link := filepath.Join(dir, "link") // as Kubernetes mounts secrets
	require.NoError(t, os.Symlink(file, link))
	for mode, want := range map[os.FileMode]struct{ refused, warned bool }{
		0o400: {}, 0o600: {}, 0o440: {}, 0o640: {},
		0o644: {warned: true}, 0o604: {warned: true},
		0o666: {refused: true}, 0o620: {refused: true}, 0o602: {refused: true}, 0o660: {refused: true},
	} {
		require.NoError(t, os.Chmod(file, mode))
		for _, name := range []string{file, link} {
			var log testkit.Log
			token, err := secret("token", tokenVariable, "--token-file", "", name,
				slog.New(slog.NewTextHandler(&log, nil)))
			if want.refused {
				require.ErrorContains(t, err, "is writable by group or others", "%o", mode)
				require.ErrorAs(t, err, new(*usageError))
				continue
			}
			require.NoError(t, err, "%o", mode)
			require.Equal(t, "0123456789abcdef", token)
			require.Equal(t, want.warned, strings.Contains(log.String(), "secret file is readable"), "%o", mode)
			require.NotContains(t, log.String(), token)
		}
	}
}

func TestOptions_PrintNoSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	key := strings.Repeat("ab", 32)
	require.NoError(t, os.WriteFile(file, []byte(key), 0o600))
	f := serverFlags{MaxBody: 1, Grace: time.Second, SecretKeyFile: file, Proxy: "http://me:pa55@proxy.example:3128"}
	options, err := f.options(&process{settings: settings{env: environment{tokenVariable: "t0ken-0123456789"}}}, false,
		nil)
	require.NoError(t, err)
	text := fmt.Sprintf("%v %+v %#v", options, options, options)
	for _, hidden := range []string{key, "pa55", "t0ken"} {
		require.NotContains(t, text, hidden)
	}
	for proxy, why := range map[string]string{
		"ftp://me:pa55@proxy.example":          "neither http nor https",
		"http://me:pa55@proxy.example:pa55":    "cannot be read",
		"http://me:pa55@proxy.example/?q=pa55": "more than a scheme, a host and a port",
		"http://me:pa55@":                      "names no host",
		"me:pa55@proxy.example":                "neither http nor https",
	} {
		require.NotContains(t, app.ProxyURL(proxy).String(), "pa55")
		f.Proxy = proxy
		_, err = f.options(&process{}, false, nil)
		require.ErrorContains(t, err,
			"proxy: must be a URL such as http://proxy.internal:3128, or none: the proxy's URL")
		require.ErrorContains(t, err, why)
		require.NotContains(t, err.Error(), "pa55")
	}
}

func TestFlags_RejectExplicitZeros(t *testing.T) {
	for _, command := range []string{"serve", "dev"} {
		code, _, stderr := try(t, []string{"RINGBACK_MAX_BODY=0"}, command, "--grace=0s", "--addr=127.0.0.1:0",
			"--store=sqlite:/no/such/x.db")
		require.Equal(t, exitUsage, code)
		require.Equal(t, "ringback: $RINGBACK_MAX_BODY: max-body: 0 B is not between 1 B and 10485760 B\nringback: "+
			"grace: 0s is not between 1s and 1h0m0s\n", stderr)
	}
}

func TestExitCode_SeparatesUsageFromFailures(t *testing.T) {
	short, writable := filepath.Join(t.TempDir(), "keys"), filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(short, []byte("short"), 0o600))
	require.NoError(t, os.WriteFile(writable, []byte("0123456789abcdef"), 0o600))
	require.NoError(t, os.Chmod(writable, 0o666))
	token := []string{"RINGBACK_TOKEN=s3cret-0123456789"}
	for _, command := range []string{"serve", "dev"} {
		for _, c := range []struct {
			code int
			env  []string
			arg  string
			want string
		}{
			{exitUsage, nil, "--store=mysql://localhost", "store: must be sqlite:FILE"},
			{exitUsage, nil, "--addr=8080", `addr: "8080" is not host:port`},
			{exitUsage, nil, "--grace=1ms", "grace: 1ms is not between 1s and 1h0m0s"},
			{exitUsage, token, "--no-auth", "no-auth: cannot be combined with a token"},
			{exitUsage, token, "--token-file=/no/such/token", "RINGBACK_TOKEN cannot be combined with --token-file"},
			{exitFault, nil, "--token-file=/no/such/token", "read the token: open /no/such/token"},
			{exitUsage, []string{"RINGBACK_SECRET_KEY=short"}, "--log=text", "RINGBACK_SECRET_KEY: key 1 of 1: "},
			{exitUsage, nil, "--secret-key-file=" + short, "--secret-key-file " + short + ": key 1 of 1: "},
			{exitUsage, nil, "--token-file=" + writable, "--token-file: " + writable +
				" is writable by group or others (mode 0666): chmod go-w it"},
			{exitUsage, []string{"RINGBACK_TOKEN=0123456789abcde"}, "--log=text", "token: must have at least 16 " +
				"characters"},
			{exitUsage, nil, "--allowed-hosts=a.example,http://b/", `allowed-hosts: "http://b/" is not a host name`},
			{exitUsage, nil, "--proxy=proxy.internal:3128", "proxy: must be a URL such as " +
				"http://proxy.internal:3128, or none: the proxy's URL is neither http nor https"},
			{exitUsage, nil, "--deny-targets=10.0.0.0/99", "deny-targets: "},
			{exitFault, nil, "--ca-file=/no/such/ca.pem", "ca-file: "},
			{exitFault, nil, "--store=sqlite:/no/such/folder/x.db", "open the store sqlite:/no/such/folder/x.db"},
		} {
			args := []string{command, "--addr=127.0.0.1:0", c.arg}
			if command == "dev" {
				args = append(args, "--inbox=127.0.0.1:0")
			}
			code, _, stderr := try(t, append([]string{"RINGBACK_STORE=sqlite:" +
				filepath.Join(t.TempDir(), "ringback.db")}, c.env...), args...)
			require.Equal(t, c.code, code, "%s: %s", args, stderr)
			require.Contains(t, stderr, "ringback: "+c.want)
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		}
	}
}

func TestDev_HasServesFlags(t *testing.T) {
	for want, args := range map[bool][]string{true: {}, false: {"--allow-private=false"}} {
		var cli commands
		parser, err := kong.New(&cli)
		require.NoError(t, err)
		_, err = parser.Parse(append([]string{"dev"}, args...))
		require.NoError(t, err)
		require.Equal(t, want, cli.Dev.AllowPrivate)
	}
	parser, err := kong.New(new(commands))
	require.NoError(t, err)
	flags := make(map[string]map[string]bool)
	for _, command := range parser.Model.Children {
		flags[command.Name] = make(map[string]bool)
		for _, flag := range command.Flags {
			flags[command.Name][flag.Name] = true
		}
	}
	require.False(t, flags["dev"]["roles"], "dev is one process")
	delete(flags["serve"], "roles")
	delete(flags["serve"], "check")
	for name := range flags["serve"] {
		require.True(t, flags["dev"][name], name)
	}
}

func TestListen_PrintsATakenPortOnOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	code, _, stderr := try(t, nil, "listen", "--addr="+taken.Addr().String())
	require.Equal(t, exitFault, code)
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	require.Contains(t, stderr, "ringback: open the inbox: ")
	require.Contains(t, stderr, taken.Addr().String())
}
