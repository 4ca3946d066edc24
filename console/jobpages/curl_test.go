package jobpages

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
)

// arguments runs a command in a shell with another curl, and returns that one's arguments, and what it read.
func arguments(t *testing.T, command string) (arguments []string, input string) {
	t.Helper()
	script := `curl() { printf '%s\0' "$@"; [ "$in" = yes ] && cat; return 0; }; in=` +
		map[bool]string{true: "yes", false: "no"}[strings.Contains(command, "| curl")] + "\n" + command
	out, err := exec.CommandContext(t.Context(), "sh", "-c",
		"X_API_KEY='se cret'; RINGBACK_SERVER=http://s; RINGBACK_TOKEN='t k'\n"+script).CombinedOutput()
	require.NoError(t, err, "%s: %s", command, out)
	parts := strings.Split(string(out), "\x00")
	if strings.Contains(command, "| curl") {
		at := len(parts) - 1
		for i, part := range parts {
			if part == "@-" {
				at = i + 1
			}
		}
		return parts[:at], strings.Join(parts[at:], "\x00")
	}
	return parts[:len(parts)-1], ""
}

func TestReceiverCommand_IsUnderstoodByAShell(t *testing.T) {
	body := "it's \"$HOME\" `id` \\ !\n@x\n"
	j := &client.JobInfo{
		Method: "PUT", ContentType: "text/x; a='b'", Body: []byte(body),
		Headers: client.Headers{"X-Api-Key": {"[redacted]"}, "X-A": {"it's $(id)", ""}, "Content-Type": {"other"}},
	}
	got, _ := arguments(t, receiverCommand(j, "https://a.example/?a=b&c='$(id)'&d[]=1"))
	require.Equal(t, []string{
		"-X", "PUT", "--globoff", "https://a.example/?a=b&c='$(id)'&d[]=1", "-H", "Content-Type: text/x; a='b'", "-H",
		"X-A: it's $(id)", "-H", "X-A;", "-H", "X-Api-Key: se cret", "--data-raw", body,
	}, got)

	got, _ = arguments(t, receiverCommand(&client.JobInfo{Method: "GET"}, "https://a.example/a/../b"))
	require.Equal(t, []string{"-X", "GET", "--path-as-is", "https://a.example/a/../b"}, got)

	j = &client.JobInfo{Method: "POST", Body: []byte("a\x00\xff")}
	got, input := arguments(t, receiverCommand(j, "https://a.example/"))
	require.Equal(t, []string{"-X", "POST", "https://a.example/", "-H", "Content-Type:", "--data-binary", "@-"}, got)
	require.Equal(t, "a\x00\xff", input)

	for _, control := range []string{"a\tb", "x\x03\r\necho INJECTED\r\n", "\x1b[201~", "\x7f", "\u009b"} {
		j.Body, j.ContentType = []byte(control), "text/plain"
		command := receiverCommand(j, "https://a.example/")
		require.NotContains(t, command, control, "a terminal would obey it")
		_, input = arguments(t, command)
		require.Equal(t, control, input)
	}
}

func TestReceiverCommand_SendsTheFileOfALongBody(t *testing.T) {
	body := strings.Repeat("x", maxCommandBody+1)
	command := receiverCommand(&client.JobInfo{Method: "POST", Body: []byte(body)}, "https://a.example/")
	require.Less(t, len(command), 200)
	dir := t.TempDir()
	run := func() (input string, err error) {
		shell := exec.CommandContext(t.Context(), "sh", "-c", "curl() { echo started; cat; }\n"+command)
		shell.Dir = dir
		out, err := shell.Output()
		return string(out), err
	}
	out, err := run()
	require.Error(t, err)
	require.Empty(t, out, "without the file nothing is sent")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "body"), []byte(body), 0o600))
	out, err = run()
	require.NoError(t, err)
	require.Equal(t, "started\n"+body, out)
}

func TestRegisterCommand_IsUnderstoodByAShell(t *testing.T) {
	job := func(body string) *client.JobInfo {
		j := new(client.JobInfo)
		require.NoError(t, json.Unmarshal([]byte(`{"id": "a", "topic": "t", "url": "https://a.example/",
			"lane": "a.example:443", "method": "POST", "content_type": "application/json", "on_dead": null,
			"headers": {"X-Api-Key": "[redacted]", "X-A": "it's"}, "body_text": null, "body": `+body+`}`), j))
		return j
	}
	j := job(`{"n": 12345678901234567890, "s": "it's"}`)
	command, secrets := registerCommand(j, "shop")
	require.Equal(t, []string{"X-Api-Key"}, secrets)
	got, _ := arguments(t, command)
	require.Equal(t, []string{
		"-X", "POST", "http://s/v1/jobs", "-H", "Authorization: Bearer t k", "-H", "Content-Type: application/json",
		"-H", "Ringback-Namespace: shop", "--data-raw", `{"body":{"n": 12345678901234567890, "s": "it's"},` +
			`"headers":{"X-A":"it's"},"method":"POST","topic":"t","url":"https://a.example/"}`,
	}, got)

	j = job("{\t\"n\": \"\u009b\"}")
	command, _ = registerCommand(j, "")
	require.NotContains(t, command, "\t", "a terminal would obey it")
	require.NotContains(t, command, "\u009b")
	_, input := arguments(t, command)
	require.Contains(t, input, `"body":`+string(j.Body))

	j.Body = make([]byte, maxCommandBody+1)
	command, _ = registerCommand(j, "")
	require.Empty(t, command)
}

func TestVariable_IsAName(t *testing.T) {
	for header, want := range map[string]string{
		"Authorization": "AUTHORIZATION", "X-Api-Key": "X_API_KEY", "1$(id)": "_1__ID_", "": "_",
	} {
		require.Equal(t, want, variable(header))
	}
}

func TestShowBody_KeepsNumbersAndBounds(t *testing.T) {
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	long, quotes := strings.Repeat("ä", maxShownBody), strings.Repeat(`"`, 20<<10)
	for _, c := range []struct {
		body, text, note string
		cut              bool
	}{
		{`{"n":12345678901234567890}`, "{\n  \"n\": " +
			"12345678901234567890\n}", "Indented to be read: it is sent as 26 B without these spaces.", false},
		{"{\n  \"n\": 1e400\n}", "{\n  \"n\": 1e400\n}", "", false},
		{`"a\"[[["`, `"a\"[[["`, "", false},
		{"plain\r\n", "plain\r\n", "", false},
		{deep, deep, "", false},
		{"\xff\x00", "/wA=", "2 B that are not text, in base64.", false},
		{"x" + long, "x" + long[:maxShownBody-2], "The first 32 KiB of 64 KiB.", true},
		{quotes, quotes[:maxShownBody*3/2/5], "The first 9.6 KiB of 20 KiB.", true},
		{"\xff" + long[:maxShownBody], "", "The first 24 KiB of 32 KiB, in base64.", true},
	} {
		got := showBody([]byte(c.body))
		if c.text == "" {
			got.Text = ""
		}
		require.Equal(t, bodyView{c.text, c.note, c.cut}, got, "%.20q", c.body)
	}
	require.Less(t, len(showBody(make([]byte, 10<<20)).Text), maxShownBody+1)
	require.Equal(t, 3, depth([]byte(`{"a[[[\"[":[[1]],"b":[]}`)))
}
