package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/ringback/ringback"

// listed is a package as go list prints it.
type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

// watch reads the metadata of the sources, so that the go command runs this test again
// when any of them has changed.
var watch = sync.OnceValue(func() error {
	return filepath.WalkDir("../..", func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == ".git" {
			return fs.SkipDir
		}
		return err
	})
})

// list returns packages of this module from go list.
func list(t *testing.T, args ...string) []listed {
	t.Helper()
	require.NoError(t, watch())
	cmd := exec.CommandContext(t.Context(), "go",
		append([]string{"list", "-json=ImportPath,Standard,Imports"}, args...)...)
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())

	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("read what go list printed: %v", err)
		}
		all = append(all, p)
	}
}

// within reports whether path is prefix or below it.
func within(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

func TestPlan_AllowsEveryImport(t *testing.T) {
	rows := make(map[string]row)
	for _, r := range plan {
		rows[r.pkg] = r
	}
	std := make(map[string]bool)
	packages := list(t, "./...")
	for _, p := range list(t, "-deps", "./...") {
		std[p.ImportPath] = p.Standard
	}
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		r, known := rows[name]
		if !known {
			t.Errorf("%s is not in the floor plan: add a row with a reason, or find it another home", name)
			continue
		}
		for _, imported := range p.Imports {
			if std[imported] || r.allows(imported) {
				continue
			}
			t.Errorf("%s must not import %s. %s: %s", name, imported, name, r.reason)
		}
	}
}

// allows reports whether the row names an import that is not of the standard library.
func (r row) allows(imported string) bool {
	if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
		return slices.Contains(r.ours, ours)
	}
	return slices.ContainsFunc(r.others, func(o string) bool { return within(imported, o) })
}

func TestPlan_RowsNameOnlyRowsAbove(t *testing.T) {
	above := make(map[string]bool)
	for _, r := range plan {
		require.NotEmpty(t, r.reason, "%s needs a reason", r.pkg)
		require.False(t, above[r.pkg], "%s is listed twice", r.pkg)
		for _, o := range r.ours {
			require.True(t, above[o], "%s names %s, which is not above it", r.pkg, o)
		}
		above[r.pkg] = true
	}
}

func TestPlan_RowsArePackages(t *testing.T) {
	there := make(map[string]bool)
	for _, p := range list(t, "./...") {
		there[strings.TrimPrefix(p.ImportPath, module+"/")] = true
	}
	for _, r := range plan {
		require.True(t, there[r.pkg], "the floor plan names %s, which is no package", r.pkg)
	}
}

func TestPlan_HasNoTwoRowsOfAPackageInTheFloorPlan(t *testing.T) {
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	require.NoError(t, err)
	written := make(map[string]int)
	for line := range strings.SplitSeq(string(text), "\n") {
		name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` |")
		if ok && strings.HasPrefix(line, "| `") {
			written[name]++
		}
	}
	for _, r := range plan {
		require.LessOrEqual(t, written[r.pkg], 1, "rows of %s in the floor plan of ARCHITECTURE.md", r.pkg)
	}
}

func TestPlan_TestPackagesAreNotShipped(t *testing.T) {
	for _, p := range list(t, "-deps", "./cmd/ringback") {
		for _, u := range unshipped {
			require.False(t, within(p.ImportPath, u), "the binary holds %s", p.ImportPath)
		}
	}
}
