package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	links   = regexp.MustCompile(`(?:href|src|srcset)="([^"]+)"`)
	targets = regexp.MustCompile(`\bid="([^"]+)"`)
)

func TestRender_HasNoDeadLink(t *testing.T) {
	dest := t.TempDir()
	n, err := Render(os.DirFS("../.."), dest)
	if err != nil || n < 45 {
		t.Fatalf("%d pages, %v", n, err)
	}
	built := os.DirFS(dest)
	ids := make(map[string]map[string]bool)
	checked := 0
	err = fs.WalkDir(built, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".html") {
			return err
		}
		for _, link := range hrefs(t, built, name) {
			file, fragment, _ := strings.Cut(link, "#")
			to := name
			if strings.Contains(file, ":") {
				continue
			}
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			checked++
			if _, err := fs.Stat(built, to); err != nil {
				t.Errorf("%s links to %s: %v", name, link, err)
			} else if fragment != "" && strings.HasSuffix(to, ".html") && !idsOf(t, built, to, ids)[fragment] {
				t.Errorf("%s links to %s: there is no such heading", name, link)
			}
		}
		return nil
	})
	if err != nil || checked < 1000 {
		t.Fatalf("%d links, %v", checked, err)
	}
	index := read(t, built, "search-index.js")
	if !strings.Contains(index, `"u":"docs/lanes.html#history"`) {
		t.Error("the search does not know a heading")
	}
	// Where the search finds something is in the site, too.
	for _, m := range regexp.MustCompile(`"u":"([^"#]+)#?([^"]*)"`).FindAllStringSubmatch(index, -1) {
		if m[2] != "" && !idsOf(t, built, m[1], ids)[m[2]] {
			t.Errorf("the search leads to %s#%s, which is not there", m[1], m[2])
		}
	}
}

func TestRender_NamesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/README.md", []byte("# A\n[b](b.md)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Render(os.DirFS(dir), t.TempDir()); err == nil || !strings.HasPrefix(fmt.Sprint(err), "README.md: ") {
		t.Fatal(err)
	}
}

func read(t *testing.T, of fs.FS, name string) string {
	t.Helper()
	content, err := fs.ReadFile(of, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func hrefs(t *testing.T, built fs.FS, name string) (all []string) {
	t.Helper()
	for _, m := range links.FindAllStringSubmatch(read(t, built, name), -1) {
		all = append(all, m[1])
	}
	return all
}

func idsOf(t *testing.T, built fs.FS, name string, known map[string]map[string]bool) map[string]bool {
	t.Helper()
	if known[name] == nil {
		known[name] = make(map[string]bool)
		for _, m := range targets.FindAllStringSubmatch(read(t, built, name), -1) {
			known[name][m[1]] = true
		}
	}
	return known[name]
}
