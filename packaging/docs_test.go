package packaging

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// pages returns the paths of the documents for users and contributors.
func pages(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob("../docs/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, docs)
	designs, err := filepath.Glob("../store/*/DESIGN.md")
	require.NoError(t, err)
	return append(slices.Concat(docs, designs), "../store/DESIGN.md", "../README.md", "../ARCHITECTURE.md",
		"../CONTRIBUTING.md", "../CHANGELOG.md")
}

var patterns sync.Map // *regexp.Regexp by text

// compiled returns a regular expression, compiled once.
func compiled(pattern string) *regexp.Regexp {
	if known, ok := patterns.Load(pattern); ok {
		return known.(*regexp.Regexp)
	}
	made := regexp.MustCompile(pattern)
	patterns.Store(pattern, made)
	return made
}

// submatches returns the first group of each match.
func submatches(pattern, text string) []string {
	var all []string
	for _, m := range compiled(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// notInAnchors are the characters that the name of a heading leaves out.
var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// anchors returns the names under which the headings of a page can be linked to.
func anchors(text string) []string {
	all := submatches(`<a id="([^"]+)">`, text)
	for _, heading := range submatches(`(?m)^#+ (.*)$`, text) {
		name := notInAnchors.ReplaceAllString(strings.ToLower(heading), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

// Tables, code and HTML have the lines that they need, and so have pages that others write.
func TestDocs_HaveLinesOf120Characters(t *testing.T) {
	for _, page := range pages(t) {
		made := page == "../docs/benchmarks.md" || page == "../docs/problems.md"
		if made || !strings.HasPrefix(page, "../docs/") && page != "../README.md" {
			continue
		}
		prose := compiled("(?ms)^ *```.*?^ *```$").ReplaceAllStringFunc(read(t, page), func(code string) string {
			return strings.Repeat("\n", strings.Count(code, "\n"))
		})
		n := 0
		for line := range strings.Lines(prose) {
			n++
			if !compiled(`^(\||    | *<|!)`).MatchString(line) {
				require.LessOrEqual(t, utf8.RuneCountInString(line), 121, "%s:%d", page, n)
			}
		}
	}
}

func TestDocs_LinksLeadToFilesAndHeadings(t *testing.T) {
	named := make(map[string][]string) // by file
	for _, page := range pages(t) {
		text := read(t, page)
		for _, link := range slices.Concat(submatches(`\]\(([^)\s]+)\)`, text),
			submatches(`(?m)^\[[^]]+\]: (\S+)$`, text), submatches(`(?:src|srcset)="([^"]+)"`, text)) {
			if strings.HasPrefix(link, "https://") {
				continue
			}
			path, anchor, _ := strings.Cut(link, "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			_, err := os.Stat(target)
			require.NoError(t, err, "%s links to %s", page, link)
			if anchor != "" {
				if named[target] == nil {
					named[target] = anchors(read(t, target))
				}
				require.Contains(t, named[target], anchor, "%s links to %s", page, link)
			}
		}
	}
}

func TestDocs_IndexLinksToEveryPage(t *testing.T) {
	index := read(t, "../docs/README.md")
	for _, page := range pages(t) {
		if name := filepath.Base(page); filepath.Dir(page) == "../docs" && name != "README.md" {
			require.Contains(t, index, "]("+name+")")
		}
	}
}

func TestDocs_FlagsPageListsTheFlagsOfServe(t *testing.T) {
	code, help, _ := ringback(t, nil, "serve", "--help")
	require.Zero(t, code)
	rows := submatches("(?m)^\\| `(--[a-z-]+)` \\|", read(t, "../docs/flags.md"))
	require.NotEmpty(t, rows)
	require.ElementsMatch(t,
		submatches(`(?m)^ +(?:-h, )?(--[a-z][a-z-]*)`, strings.Replace(help, "-h, --help", "", 1)), rows)
}

func TestDocs_FlagsPageNamesTheVariablesOfOtherCommands(t *testing.T) {
	page := read(t, "../docs/flags.md")
	_, serve, _ := ringback(t, nil, "serve", "--help")
	for _, command := range []string{"health", "backup", "restore", "verify", "doctor", "export", "import", "listen"} {
		code, help, _ := ringback(t, nil, command, "--help")
		require.Zero(t, code)
		variables := submatches(`\$(RINGBACK_[A-Z_]+)`, help)
		require.NotEmpty(t, variables)
		for _, name := range variables {
			if command == "doctor" && strings.Contains(serve, "$"+name) { // it takes serve's flags
				continue
			}
			require.Contains(t, page, "`"+name+"`", "ringback %s", command)
		}
	}
}

func TestDocs_WaitingPageListsTheKindsOfTheContract(t *testing.T) {
	var contract struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Enum []string }
			}
		}
	}
	readYAML(t, "../api/openapi.yaml", &contract)
	kinds := contract.Components.Schemas["WaitingFor"].Properties["kind"].Enum
	require.NotEmpty(t, kinds)
	require.ElementsMatch(t, kinds, submatches("(?m)^\\| `([a-z_]+)` \\|", read(t, "../docs/waiting.md")))
}

func TestDocs_ArchitectureNamesFilesThatExist(t *testing.T) {
	text := read(t, "../ARCHITECTURE.md")
	_, table, found := strings.Cut(text, "\n## Where to find what\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	for line := range strings.Lines(table) {
		dir := ""
		for _, name := range submatches("`([a-z_*/]+(?:\\.go|\\.lua)?)`", line) {
			if strings.Contains(name, "/") {
				dir = filepath.Dir(name)
			} else if filepath.Ext(name) != "" {
				name = filepath.Join(dir, name)
			}
			found, err := filepath.Glob(filepath.Join("..", name))
			require.NoError(t, err)
			require.NotEmpty(t, found, "ARCHITECTURE.md names %s", name)
		}
	}
}

func TestDocs_DesignsNameFilesThatExist(t *testing.T) {
	designs, err := filepath.Glob("../store/*/DESIGN.md")
	require.NoError(t, err)
	for _, path := range append(designs, "../store/DESIGN.md") {
		for _, name := range submatches("`([a-z_/]+\\.(?:go|lua))`", read(t, path)) {
			var found []string
			dir := filepath.Dir(path)
			for _, from := range []string{"..", dir, dir + "/*", dir + "/*/*"} {
				files, err := filepath.Glob(from + "/" + name)
				require.NoError(t, err)
				found = append(found, files...)
			}
			require.NotEmpty(t, found, "%s names %s", path, name)
		}
	}
}
