// Package assets has the static files of the console, and serves them: one stylesheet, an icon, scripts, and htmx with
// its extension for server-sent events. They are part of the binary; nothing is loaded from other hosts.
//
// The path of a file contains a checksum of its content, so browsers may keep it for ever. A server knows only the
// checksums of its own files: while servers of two versions share an address, a page of one may ask the other for a
// file, which answers 404.
//
// console.js opens the stream that the attribute data-live of #live names, unless the reader has paused or the tab is
// hidden. A stream must begin with all fragments of its page: after a pause, a new one is opened.
//
// The files in vendor/ are those of an npm package, byte for byte. make assets fetches them; packages.txt pins the
// package.
package assets

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// HTMXConfig is the content of <meta name="htmx-config">, which every page needs before its scripts. It switches off
// what the console does not use: the history, a stylesheet that htmx would add, and extensions other than hx-sse. A
// morph leaves the attribute open alone, so that a reader's <details> stay open. Answers with an error are whole pages:
// they do not become part of the form that asked for a preview.
const HTMXConfig = `{"history":false,"includeIndicatorCSS":false,"extensions":"sse","mode":"same-origin",` +
	`"morphIgnore":["data-htmx-powered","open"],` +
	`"noSwap":[204,304,"4xx","5xx"]}`

//go:embed icon.svg style.css theme.js console.js vendor/htmx.min.js vendor/hx-sse.min.js vendor/htmx-LICENSE.txt
var embedded embed.FS

// contentTypes has the content types of files by extension. mime.TypeByExtension would ask the machine.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
}

// file is a static file, safe for concurrent use.
type file struct {
	path        string
	contentType string
	plain       []byte
	gzipped     func() []byte
}

// files has the static files by name, byPath by path.
var files, byPath = readFiles()

func readFiles() (byName, byPath map[string]*file) {
	byName, byPath = make(map[string]*file), make(map[string]*file)
	for _, folder := range []string{".", "vendor"} {
		entries, err := embedded.ReadDir(folder)
		if err != nil {
			panic(err) // embed has checked it
		}
		for _, entry := range entries {
			if entry.IsDir() {
				continue
			}
			f := readFile(path.Join(folder, entry.Name()))
			byName[entry.Name()], byPath[f.path] = f, f
		}
	}
	return byName, byPath
}

func readFile(name string) *file {
	content, err := embedded.ReadFile(name)
	if err != nil {
		panic(err) // embed has checked it
	}
	base := path.Base(name)
	sum := sha256.Sum256(content)
	return &file{
		path:        "static/" + hex.EncodeToString(sum[:8]) + "/" + base,
		contentType: contentTypes[path.Ext(base)],
		plain:       content,
		gzipped:     sync.OnceValue(func() []byte { return compress(content) }),
	}
}

func compress(content []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is valid
	}
	// A bytes.Buffer returns no errors.
	_, _ = w.Write(content)
	_ = w.Close()
	return out.Bytes()
}

// Path returns the path of a static file below the console's root, without a leading slash: static/{checksum}/{name}.
// It panics if there is no file of this name.
func Path(name string) string {
	f, ok := files[name]
	if !ok {
		panic(fmt.Sprintf("assets: there is no file %q", name))
	}
	return f.path
}

// Handler returns a handler that serves the static files at their paths below /. Wrap it in http.StripPrefix if the
// console has a prefix.
func Handler() http.Handler {
	return http.HandlerFunc(serve)
}

func serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	f, ok := byPath[strings.TrimPrefix(r.URL.Path, "/")]
	if !ok {
		// A server of another version may know the path.
		header.Set("Cache-Control", "no-store")
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	content := f.plain
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		content = f.gzipped()
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Content-Type", f.contentType)
	header.Set("Content-Length", strconv.Itoa(len(content)))
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Vary", "Accept-Encoding")
	if r.Method == http.MethodGet {
		// It fails only if the client has gone.
		_, _ = w.Write(content)
	}
}

// acceptsGzip reports whether the values of Accept-Encoding allow gzip: named, or by *, with a weight above zero.
func acceptsGzip(values []string) bool {
	accepts := false
	for entry := range strings.SplitSeq(strings.Join(values, ","), ",") {
		coding, parameters, _ := strings.Cut(entry, ";")
		allowed := true
		if weight, ok := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(parameters), " ", ""), "q="); ok {
			q, err := strconv.ParseFloat(weight, 64)
			allowed = err == nil && q > 0
		}
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return allowed
		case "*":
			accepts = allowed
		}
	}
	return accepts
}
