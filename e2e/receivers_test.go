package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/sign"
)

// signedRequest is a request for an example of docs/receivers.md.
type signedRequest struct {
	name    string
	headers map[string]string
	body    string
	refused bool
}

// requestsFor returns requests that a key signs, and what each may be refused for.
func requestsFor(t *testing.T, key sign.Secret) []signedRequest {
	t.Helper()
	signer, err := sign.NewSigner(key)
	require.NoError(t, err)
	signed := func(name, body string, at time.Time) signedRequest {
		return signedRequest{name: name, body: body, headers: map[string]string{
			"webhook-id": "job-1", "webhook-timestamp": fmt.Sprint(at.Unix()),
			"webhook-signature": signer.Sign("job-1", at, []byte(body)),
		}}
	}
	now := time.Now()
	changed, old, unsigned := signed("wrong signature", `{"n":1}`, now), signed("old", `{"n":1}`, now.Add(-time.Hour)),
		signed("unsigned", "", now)
	changed.body = `{"n":2}`
	delete(unsigned.headers, "webhook-signature")
	changed.refused, old.refused, unsigned.refused = true, true, true
	rotated := signed("a second signature", `{"n":3}`, now)
	rotated.headers["webhook-signature"] = "v1,AAAA " + rotated.headers["webhook-signature"]
	return []signedRequest{
		rotated,
		signed("empty", "", now), changed, signed("binary", "\x00\xff\xfe\r\n\x80", now), old, unsigned,
		signed("JSON", `{"name":"Zoë"}`, now),
	}
}

// receiverExample returns the block of docs/receivers.md that follows a word in bold.
func receiverExample(t *testing.T, language string) string {
	t.Helper()
	return blockAfter(t, "../docs/receivers.md", "\n**"+language+"**")
}

// blockAfter returns the first block of a page after a mark.
func blockAfter(t *testing.T, file, mark string) string {
	t.Helper()
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	_, text, found := strings.Cut(string(page), mark)
	require.True(t, found, mark)
	var lines []string
	for line := range strings.Lines(text) {
		if code, indented := strings.CutPrefix(line, "    "); indented {
			lines = append(lines, code)
		} else if len(lines) > 0 && strings.TrimSpace(line) != "" {
			break
		} else if len(lines) > 0 {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// requireFound fails, or without CI skips, if a program is missing.
func requireFound(t testing.TB, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is needed and was not found: %v", program, err)
		}
		t.Skip(program + " was not found")
	}
}

// languages are those of the docs' programs: a command that must be installed, the file of a program, and what runs it.
var languages = map[string]struct {
	needs, file string
	run         []string
}{
	"Go":      {"go", "main.go", nil}, // built
	"Node.js": {"node", "main.mjs", []string{"node"}},
	"Python":  {"python3", "main.py", []string{"python3", "-u"}}, // prints at once
	"PHP":     {"php", "main.php", []string{"php"}},
	"Java":    {"javac", "Main.java", []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}}, // starts faster
}

// startDocProgram runs a program of the docs until the test ends, or until stop is called, which returns its output.
func startDocProgram(
	t *testing.T, language, text string, env []string, args ...string,
) (cmd *exec.Cmd, stop func() string) {
	t.Helper()
	l, dir := languages[language], t.TempDir()
	requireFound(t, l.needs)
	file := filepath.Join(dir, l.file)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	command := slices.Concat(l.run, args, []string{file})
	if language == "Go" {
		command = []string{filepath.Join(dir, "program")}
		out, err := goBuild(t.Context(), "-o", command[0], file).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	cmd = exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = env
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	require.NoError(t, cmd.Start())
	stop = sync.OnceValue(func() string {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return output.String()
	})
	t.Cleanup(func() {
		if out := stop(); t.Failed() {
			t.Log(out)
		}
	})
	return cmd, stop
}

// The servers of docs/receivers.md, as they stand there but for the port.
func TestReceivers_ServersOfTheDocsTakeEveryBody(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"Go", "Node.js", "PHP", "Java"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			addr := listener.Addr().String()
			require.NoError(t, listener.Close())
			example := receiverExample(t, language)
			_, port, _ := strings.Cut(addr, ":")
			replaced := regexp.MustCompile(`\b9000\b`).ReplaceAllString(example, port)
			require.NotEqual(t, example, replaced)
			var args []string
			if language == "PHP" {
				args = []string{"-S", addr}
			}
			key := sign.NewSecret()
			startDocProgram(t, language, replaced, append(os.Environ(), "WEBHOOK_SECRET="+key.Text()), args...)
			eventually(t, func() bool {
				conn, err := net.Dial("tcp", addr)
				if err == nil {
					err = conn.Close()
				}
				return err == nil
			}, "the example listens")
			for _, r := range requestsFor(t, key) {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/hooks",
					strings.NewReader(r.body))
				require.NoError(t, err)
				for name, value := range r.headers {
					req.Header.Set(name, value)
				}
				resp, err := (&http.Client{Timeout: testkit.MustCome}).Do(req)
				require.NoError(t, err, "%s: the example has ended", r.name)
				_, _ = io.Copy(io.Discard, resp.Body)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, r.refused, resp.StatusCode == http.StatusUnauthorized, "%s: %s", r.name, resp.Status)
				if !r.refused {
					require.Equal(t, http.StatusOK, resp.StatusCode, r.name)
				}
			}
		})
	}
}

// The functions of docs/receivers.md, each called by a line or two of its language.
func TestReceivers_FunctionsOfTheDocsTakeEveryBody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		language, program, call string
		key                     sign.Secret
	}{
		{
			language: "A public key", program: "node", key: sign.NewKey(),
			call: `const { secret, headers, body } = JSON.parse(process.env.CASE);
console.log(verified(publicKey(secret), headers, Buffer.from(body, "base64")));`,
		},
		{
			language: "Python", program: "python3", key: sign.NewSecret(),
			call: `import json, os
case = json.loads(os.environ["CASE"])
print(str(verify(case["secret"], case["headers"], base64.b64decode(case["body"]))).lower())`,
		},
		{language: "Shell", program: "sh", key: sign.NewSecret()},
	} {
		t.Run(c.language, func(t *testing.T) {
			t.Parallel()
			requireFound(t, c.program)
			example := receiverExample(t, c.language)
			for _, r := range requestsFor(t, c.key) {
				secret := c.key.Text()
				if c.key.PublicKey() != "" {
					secret = c.key.PublicKey()
				}
				one, err := json.Marshal(map[string]any{
					"secret": secret, "headers": r.headers, "body": base64.StdEncoding.EncodeToString([]byte(r.body)),
				})
				require.NoError(t, err)
				dir := t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(dir, "body"), []byte(r.body), 0o600))
				name := map[string]string{"node": "f.mjs", "python3": "f.py", "sh": "f.sh"}[c.program]
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(example+"\n"+c.call+"\n"), 0o600))
				cmd := exec.CommandContext(t.Context(), c.program, name)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "CASE="+string(one), "secret="+secret, "id="+r.headers["webhook-id"],
					"at="+r.headers["webhook-timestamp"], "signature="+r.headers["webhook-signature"])
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s: %s", r.name, out)
				want := map[bool]string{true: "false", false: "true"}[r.refused]
				if c.program == "sh" { // it says of a signature whether it is right, whatever its time
					want = map[bool]string{true: "invalid", false: "valid"}[r.refused && r.name != "old"]
				}
				require.Equal(t, want, strings.TrimSpace(string(out)), r.name)
			}
		})
	}
}
