package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/cli"
	"github.com/ringback/ringback/internal/app"
)

func TestCallableAddr_MapsUnspecifiedToLoopback(t *testing.T) {
	for addr, want := range map[string]string{
		"0.0.0.0:8080": "127.0.0.1:8080", "[::]:8081": "127.0.0.1:8081", "[::ffff:0.0.0.0]:1": "127.0.0.1:1",
		"127.0.0.1:8080": "127.0.0.1:8080", "[::1]:80": "[::1]:80", "10.0.0.1:80": "10.0.0.1:80",
	} {
		require.Equal(t, want, callableAddr(addr), addr)
	}
}

func TestBanner_DoesNotPrintTheToken(t *testing.T) {
	for _, c := range []struct{ tokens, file, want string }{
		{"", "", ""},
		{"s3cret", "", ` -H "Authorization: Bearer $RINGBACK_TOKEN"`},
		{"s3cret\nolder", "", ` -H "Authorization: Bearer $(echo "$RINGBACK_TOKEN" | head -n 1)"`},
		{"s3cret", "/run/token", ` -H "Authorization: Bearer $(head -n 1 /run/token)"`},
		{"s3cret", "it's mine", ` -H "Authorization: Bearer $(head -n 1 'it'\''s mine')"`},
	} {
		g := banner{tokens: app.Options{Token: app.Secret(c.tokens)}.RootTokens(), tokenFile: c.file}
		require.Equal(t, c.want, g.authorization())
	}
}

func TestShellWord_SurvivesTheShell(t *testing.T) {
	for _, text := range []string{"plain/file.txt", "", "two words", "it's", `$HOME "x" \ ;`} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+cli.ShellWord(text)).Output()
		require.NoError(t, err)
		require.Equal(t, text, string(out))
	}
}

func TestBanner_RegistersASampleOnlyInANewStore(t *testing.T) {
	registered, posts := 0, 0
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "Bearer new", r.Header.Get("Authorization"))
		if r.Method == http.MethodPost {
			posts++
			registered = 1
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte("{}"))
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"totals": map[string]any{"registered": registered}})
	}))
	defer api.Close()
	var out bytes.Buffer
	g := banner{
		api: strings.TrimPrefix(api.URL, "http://"), inbox: "127.0.0.1:8081",
		tokens: []app.Secret{"new", "old"}, tokenFile: "t", out: &out,
	}
	for range 2 {
		g.print(t.Context())
	}
	require.Equal(t, 1, posts)
	require.Equal(t, 1, strings.Count(out.String(), "a sample job was sent"))
	require.Equal(t, 2, strings.Count(out.String(), `try   curl http://`+g.api+
		`/v1/jobs -H "Authorization: Bearer $(head -n 1 t)" -H 'Content-Type: application/json' `+
		`-d '{"url": "http://127.0.0.1:8081/"`))
}
