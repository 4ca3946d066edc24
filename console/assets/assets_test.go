package assets

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// get sends a request to the handler.
func get(t *testing.T, method, path, acceptEncoding string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/"+path, http.NoBody)
	if acceptEncoding != "" {
		r.Header.Set("Accept-Encoding", acceptEncoding)
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

func TestAssets_AreSmall(t *testing.T) {
	total := 0
	for name, f := range files {
		total += len(f.gzipped())
		t.Logf("%s: %d B, gzipped %d B", name, len(f.plain), len(f.gzipped()))
	}
	require.LessOrEqual(t, total, 35_000)
	require.LessOrEqual(t, len(files["console.js"].gzipped()), 6_000)
}

// otherHost matches URLs with a host, outside comments: with a scheme, or quoted and without one.
var otherHost = regexp.MustCompile(`(?i)\b(https?|wss?):/|["'(=]\s*//[a-z0-9]|@import`)

func TestAssets_ReferToNoOtherHost(t *testing.T) {
	for name, f := range files {
		// a name, which nobody loads
		text := strings.ReplaceAll(string(f.plain), `xmlns="http://www.w3.org/2000/svg"`, "")
		require.Empty(t, otherHost.FindAllString(text, -1), name)
	}
	for _, bad := range []string{
		`url(//x.example/a)`, `import "https://x.example"`, `new WebSocket('wss://x')`, `@import "a"`,
	} {
		require.Regexp(t, otherHost, bad)
	}
}

// The policy of the console's pages has neither unsafe-inline nor unsafe-eval.
func TestAssets_NeedNoEvalOfOurs(t *testing.T) {
	for _, name := range []string{"theme.js", "console.js"} {
		require.NotRegexp(t, `\beval\(|new Function|innerHTML|insertAdjacentHTML|document\.write`,
			string(files[name].plain), name)
	}
}

func TestVendor_IsWhatIsPinned(t *testing.T) {
	pins, err := os.ReadFile("packages.txt")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^package htmx\.org@4\.\d+\.\d+ sha512-[A-Za-z0-9+/]{86}==$`, string(pins))
	var want []string
	for line := range strings.Lines(string(pins)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "file" {
			want = append(want, fields[2])
		}
	}

	sums, err := os.ReadFile("vendor/SHA256SUMS")
	require.NoError(t, err)
	var got []string
	for line := range strings.Lines(string(sums)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, ok, line)
		content, err := os.ReadFile("vendor/" + name)
		require.NoError(t, err)
		require.Equal(t, sum, fmt.Sprintf("%x", sha256.Sum256(content)), "%s is not what make assets writes", name)
		require.Equal(t, content, files[name].plain, "%s is not embedded", name)
		got = append(got, name)
	}
	require.ElementsMatch(t, want, got)
	entries, err := os.ReadDir("vendor")
	require.NoError(t, err)
	require.Len(t, entries, len(want)+1, "vendor/ has the files of packages.txt and SHA256SUMS, and no folders")
}

func TestPath_ChangesWithContent(t *testing.T) {
	for name, f := range files {
		sum := sha256.Sum256(f.plain)
		require.Equal(t, fmt.Sprintf("static/%x/%s", sum[:8], name), Path(name))
	}
	require.PanicsWithValue(t, `assets: there is no file "no.css"`, func() { Path("no.css") })
}

func TestHandler_ServesFiles(t *testing.T) {
	types := map[string]string{
		"style.css": "text/css; charset=utf-8", "theme.js": "text/javascript; charset=utf-8",
		"console.js":  "text/javascript; charset=utf-8",
		"htmx.min.js": "text/javascript; charset=utf-8", "hx-sse.min.js": "text/javascript; charset=utf-8",
		"htmx-LICENSE.txt": "text/plain; charset=utf-8", "icon.svg": "image/svg+xml",
	}
	require.Len(t, files, len(types))
	for name, contentType := range types {
		w := get(t, http.MethodGet, Path(name), "")
		require.Equal(t, http.StatusOK, w.Code, name)
		require.Equal(t, contentType, w.Header().Get("Content-Type"))
		require.Equal(t, "public, max-age=31536000, immutable", w.Header().Get("Cache-Control"))
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		require.Equal(t, "Accept-Encoding", w.Header().Get("Vary"))
		require.Empty(t, w.Header().Get("Content-Encoding"))
		require.Equal(t, strconv.Itoa(w.Body.Len()), w.Header().Get("Content-Length"))
		require.Equal(t, files[name].plain, w.Body.Bytes())

		zipped := get(t, http.MethodGet, Path(name), "gzip, deflate, br")
		require.Equal(t, "gzip", zipped.Header().Get("Content-Encoding"))
		require.Equal(t, strconv.Itoa(zipped.Body.Len()), zipped.Header().Get("Content-Length"))
		require.Less(t, zipped.Body.Len(), w.Body.Len())
		plain, err := gzip.NewReader(bytes.NewReader(zipped.Body.Bytes()))
		require.NoError(t, err)
		content, err := io.ReadAll(plain)
		require.NoError(t, err)
		require.Equal(t, w.Body.Bytes(), content)

		head := get(t, http.MethodHead, Path(name), "gzip")
		require.Equal(t, http.StatusOK, head.Code)
		require.Zero(t, head.Body.Len())
		require.Equal(t, zipped.Header(), head.Header())
	}
}

func TestHandler_AnswersUnknownPathsWith404(t *testing.T) {
	known := Path("style.css")
	sum := strings.Split(known, "/")[1]
	for _, path := range []string{
		"", "static", "static/", "static/" + sum, "static/" + sum + "/", "static/" + sum + "/console.js",
		"static/0000000000000000/style.css", "static/" + sum + "/../" + sum + "/style.css", "style.css", known + "/",
		"static/" + sum + "/packages.txt", "static/" + sum + "/vendor/htmx.min.js",
	} {
		w := get(t, http.MethodGet, path, "")
		require.Equal(t, http.StatusNotFound, w.Code, path)
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"), path)
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	}
	w := get(t, http.MethodPost, known, "")
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
}

func TestHandler_CompressesOnlyIfAccepted(t *testing.T) {
	for accept, gzipped := range map[string]bool{
		"gzip": true, "br, GZIP": true, "deflate, gzip;q=0.5": true, "x-gzip": true, "*": true,
		"br;q=1, *;q=0.1": true, "gzip ; Q=1": true, "": false, "identity": false, "br": false, "gzip;q=0": false,
		"gzip; q=0.000": false, "*, gzip;q=0": false, "*;q=0": false, "gzip;q=no": false, "gzipped": false,
	} {
		require.Equal(t, gzipped,
			get(t, http.MethodGet, Path("style.css"), accept).Header().Get("Content-Encoding") == "gzip", "%q", accept)
	}
}
