package e2e

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The libraries that interop/verify.mjs uses.
var libraries = []string{"standardwebhooks", "svix"}

// interopCase is a request for a library to verify.
type interopCase struct {
	Name    string            `json:"-"`
	Library string            `json:"library"`
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	// as base64, which is how JSON has bytes; one library reads it as JSON
	Body []byte `json:"body_base64"`
	Now  int64  `json:"now"`  // the receiver's clock in Unix seconds; 0: the machine's
	Want string `json:"want"` // ok, refused
}

// interopResult is the result of a case.
type interopResult struct {
	Got      string `json:"got"` // ok, refused, error
	Reason   string `json:"reason"`
	AsWanted bool   `json:"as_wanted"`
}

// interop runs the libraries on all cases. Results are in the order of the cases.
func interop(t testing.TB, cases []interopCase) []interopResult {
	t.Helper()
	requireFound(t, "node")
	requireFound(t, "npm")
	dir, err := installInterop()
	require.NoError(t, err)
	in, err := json.Marshal(map[string]any{"cases": cases})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := node(ctx, dir, in, "node", "verify.mjs")
	require.NoError(t, err)
	var answer struct {
		Results []interopResult `json:"results"`
	}
	require.NoError(t, json.Unmarshal(out, &answer), "%s", out)
	require.Len(t, answer.Results, len(cases))
	return answer.Results
}

// requireInterop fails for each case with an unexpected result.
func requireInterop(t *testing.T, cases []interopCase) {
	t.Helper()
	results := interop(t, cases)
	for i, c := range cases {
		t.Run(c.Library+" "+c.Name, func(t *testing.T) {
			require.True(t, results[i].AsWanted, "got %s (%s), want %s", results[i].Got, results[i].Reason, c.Want)
		})
	}
}

// installInterop copies interop to the folder of the binary and installs its dependencies, once for all tests. TestMain
// removes the folder.
var installInterop = sync.OnceValues(func() (dir string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	dir = filepath.Join(filepath.Dir(binary), "interop")
	if err := os.CopyFS(dir, os.DirFS("interop")); err != nil {
		return "", fmt.Errorf("copy interop: %w", err)
	}
	_, err = node(ctx, dir, nil, "npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--omit=dev",
		"--prefer-offline", "--ignore-scripts")
	return dir, err
})

// node runs a Node.js program in dir. An error contains its stderr.
func node(ctx context.Context, dir string, stdin []byte, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.WaitDelay = 5 * time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", program, args[0], err, stderr.String())
	}
	return out, nil
}

// hmacHeaders returns the headers of a request signed with a whsec_ secret, by an independent implementation.
func hmacHeaders(secret, id string, at time.Time, body string) map[string]string {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	timestamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "." + body))
	return map[string]string{
		"webhook-id":        id,
		"webhook-timestamp": timestamp,
		"webhook-signature": "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)),
	}
}

// Detects a verify.mjs that accepts or refuses everything.
func TestSigning_LibrariesAgreeWithTheSpecification(t *testing.T) {
	const (
		secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		other  = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
		body   = `{"test": 2432232314}`
		id     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
		at     = 1614265330

		machineTime = -1
	)
	// The known answer of standard-webhooks' own tests.
	known := map[string]string{
		"webhook-id":        id,
		"webhook-timestamp": strconv.Itoa(at),
		"webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	}
	require.Equal(t, known, hmacHeaders(secret, id, time.Unix(at, 0), body))

	with := func(name, value string) map[string]string {
		headers := maps.Clone(known)
		headers[name] = value
		return headers
	}
	renamed := func(name func(string) string) map[string]string {
		headers := make(map[string]string)
		for n, v := range known {
			headers[name(n)] = v
		}
		return headers
	}
	signature := known["webhook-signature"]
	otherSignature := hmacHeaders(other, id, time.Unix(at, 0), body)["webhook-signature"]
	asymmetric := "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
	machine := hmacHeaders(secret, "msg_1", time.Now(), body)

	var cases []interopCase
	for _, library := range libraries {
		svixNames := "refused"
		if library == "svix" {
			svixNames = "ok"
		}
		for _, c := range []interopCase{
			{Name: "known answer", Want: "ok"},
			{Name: "names in capitals", Headers: renamed(strings.ToUpper), Want: "ok"},
			{Name: "names of svix", Headers: renamed(func(n string) string {
				return "svix" + strings.TrimPrefix(n, "webhook")
			}), Want: svixNames},
			{Name: "at the machine's time", Headers: machine, Now: machineTime, Want: "ok"},
			{Name: "the known answer at the machine's time", Now: machineTime, Want: "refused"},
			{Name: "the last second", Now: at + 300, Want: "ok"},
			{Name: "too old", Now: at + 301, Want: "refused"},
			{Name: "the first second", Now: at - 300, Want: "ok"},
			{Name: "too new", Now: at - 301, Want: "refused"},
			{Name: "a rotation, the first fits", Headers: with("webhook-signature", signature+" "+
				otherSignature), Want: "ok"},
			{Name: "a rotation, the last fits", Headers: with("webhook-signature", otherSignature+" "+
				signature), Want: "ok"},
			{Name: "with an ed25519 signature", Headers: with("webhook-signature", asymmetric+" "+
				signature), Want: "ok"},
			{Name: "an ed25519 signature alone", Headers: with("webhook-signature", asymmetric), Want: "refused"},
			{Name: "another's signature", Headers: with("webhook-signature", otherSignature), Want: "refused"},
			{Name: "another secret", Secret: other, Want: "refused"},
			{Name: "a changed byte", Body: []byte(`{"test": 2432232315}`), Want: "refused"},
			{Name: "a byte more", Body: []byte(body + " "), Want: "refused"},
			{Name: "another id", Headers: with("webhook-id", "msg_2"), Want: "refused"},
			{Name: "another time", Headers: with("webhook-timestamp", strconv.Itoa(at+1)), Want: "refused"},
			{Name: "no id", Headers: with("webhook-id", ""), Want: "refused"},
			{Name: "no signature", Headers: with("webhook-signature", ""), Want: "refused"},
		} {
			c.Library = library
			if c.Secret == "" {
				c.Secret = secret
			}
			if c.Headers == nil {
				c.Headers = known
			}
			if c.Body == nil {
				c.Body = []byte(body)
			}
			switch c.Now {
			case 0:
				c.Now = at
			case machineTime:
				c.Now = 0
			}
			cases = append(cases, c)
		}
	}
	requireInterop(t, cases)
}

func TestSigning_LibraryErrorsAreNotRejections(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	headers := hmacHeaders(secret, "msg_1", time.Now(), "no JSON")
	results := interop(t, []interopCase{
		{Library: "standardwebhooks", Secret: secret, Headers: headers, Body: []byte("no JSON"), Want: "refused"},
		{Library: "svix", Secret: "whsec_%", Headers: headers, Body: []byte("no JSON"), Want: "refused"},
		{Library: "none", Secret: secret, Headers: headers, Want: "refused"},
	})
	for _, result := range results {
		require.Equal(t, "error", result.Got, result.Reason)
		require.False(t, result.AsWanted)
	}
}
