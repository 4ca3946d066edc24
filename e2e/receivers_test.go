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
	"strings"
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
	return []signedRequest{
		signed("empty", "", now), changed, signed("binary", "\x00\xff\xfe\r\n\x80", now), old, unsigned,
		signed("JSON", `{"name":"Zoë"}`, now),
	}
}

// receiverExample returns the block of docs/receivers.md that follows a word in bold.
func receiverExample(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/receivers.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(page), "\n**"+language+"**")
	require.True(t, found)
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

// The servers of docs/receivers.md, as they stand there but for the port.
func TestReceivers_ServersOfTheDocsTakeEveryBody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		language, file string
		command        func(t *testing.T, file string) *exec.Cmd
	}{
		{"Go", "main.go", func(t *testing.T, file string) *exec.Cmd {
			program := filepath.Join(dir, "receiver")
			out, err := goBuild(t.Context(), "-o", program, file).CombinedOutput()
			require.NoError(t, err, "%s", out)
			return exec.CommandContext(t.Context(), program)
		}},
		{"Node.js", "server.mjs", func(t *testing.T, file string) *exec.Cmd {
			requireFound(t, "node")
			return exec.CommandContext(t.Context(), "node", file)
		}},
	} {
		t.Run(c.language, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			addr := listener.Addr().String()
			require.NoError(t, listener.Close())
			file := filepath.Join(dir, c.file)
			example := receiverExample(t, c.language)
			_, port, _ := strings.Cut(addr, ":")
			replaced := regexp.MustCompile(`\b9000\b`).ReplaceAllString(example, port)
			require.NotEqual(t, example, replaced)
			require.NoError(t, os.WriteFile(file, []byte(replaced), 0o600))

			key := sign.NewSecret()
			cmd := c.command(t, file)
			cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+key.Text())
			var output bytes.Buffer
			cmd.Stdout, cmd.Stderr = &output, &output
			require.NoError(t, cmd.Start())
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // it was killed
			})
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
