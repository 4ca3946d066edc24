package consoletest

import (
	"flag"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files of pages")

// volatile are parts of pages that differ from run to run: checksums of assets, ids and names that are random, the
// host.
var volatile = []struct {
	pattern *regexp.Regexp
	to      string
}{
	{regexp.MustCompile(`/static/[0-9a-f]{8,}/`), "/static/CHECKSUM/"},
	{regexp.MustCompile(`\b[0-9a-z]{26}\b`), "RANDOM-ID"},
	{regexp.MustCompile(`\b0[0-9a-z]{20}\b`), "RANDOM-ID"}, // of the server
	{regexp.MustCompile(`[^\s<>"/]+/console-test\b`), "HOST/console-test"},
	{regexp.MustCompile(`\btokens/[0-9A-Za-z]{8}\b`), "tokens/TOKEN-ID"},
	{regexp.MustCompile(`\([0-9A-Za-z]{8}\)</li>`), "(TOKEN-ID)</li>"},
	{regexp.MustCompile(`<span class="mono">[0-9A-Za-z]{8}</span>`), `<span class="mono">TOKEN-ID</span>`},
}

// mainPart returns the element main of a page; empty: it has none.
func mainPart(page string) string {
	const end = "</main>"
	from, to := strings.Index(page, "<main"), strings.LastIndex(page, end)
	if from < 0 || to < from {
		return ""
	}
	return page[from : to+len(end)]
}

// Golden compares the main part of a page with testdata/NAME.html. With the flag -update it writes the file.
func (s *Site) Golden(name, path string) string {
	s.t.Helper()
	page := s.Get(path).OK()
	part := mainPart(page)
	require.NotEmpty(s.t, part, "the page %s has no main part", path)
	for _, v := range volatile {
		part = v.pattern.ReplaceAllString(part, v.to)
	}
	part += "\n"
	file := filepath.Join("testdata", name+".html")
	if *update {
		require.NoError(s.t, os.MkdirAll("testdata", 0o750))
		require.NoError(s.t, os.WriteFile(file, []byte(part), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(s.t, err, "run the test with -update to write it")
	require.Equal(s.t, string(want), part,
		"%s differs from %s: look at the page, then run the test with -update", path, file)
	return page
}

// Text returns the text of HTML, without tags and with single spaces. Tests call it so often that regular expressions
// would take a fifth of their time.
func Text(page string) string {
	if main := mainPart(page); main != "" {
		page = main
	}
	var text strings.Builder
	for page != "" {
		before, rest, found := strings.Cut(page, "<")
		text.WriteString(before)
		_, after, closed := strings.Cut(rest, ">")
		switch {
		case closed:
			text.WriteByte(' ')
		case found:
			text.WriteString("<" + rest)
		}
		page = after
	}
	isSpace := func(r rune) bool { return strings.ContainsRune(" \t\n\f\r", r) }
	return strings.TrimSpace(strings.Join(strings.FieldsFunc(html.UnescapeString(text.String()), isSpace), " "))
}
