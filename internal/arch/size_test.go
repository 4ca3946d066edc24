package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Bounds of what one reader holds in mind at a time.
const (
	maxPackageLines     = 3500 // of Go, Lua and SQL, without tests
	maxInterfaceMethods = 8    // without those of embedded interfaces
)

func TestPackages_AreReadableInOneSitting(t *testing.T) {
	for _, r := range plan {
		if slices.ContainsFunc(unshipped, func(u string) bool { return within(module+"/"+r.pkg, u) }) {
			continue
		}
		lines := 0
		for _, pattern := range []string{"*.go", "*.lua", "*.sql"} {
			files, err := filepath.Glob(filepath.Join("../..", r.pkg, pattern))
			require.NoError(t, err)
			for _, file := range files {
				if strings.HasSuffix(file, "_test.go") {
					continue
				}
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				lines += bytes.Count(text, []byte("\n"))
				if filepath.Ext(file) == ".go" {
					checkInterfaces(t, file, text)
				}
			}
		}
		require.LessOrEqual(t, lines, maxPackageLines, "%s: divide it by subject", r.pkg)
	}
}

// checkInterfaces fails the test for an interface with too many methods.
func checkInterfaces(t *testing.T, file string, text []byte) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if declared, ok := spec.Type.(*ast.InterfaceType); ok {
			methods := 0
			for _, field := range declared.Methods.List {
				methods += len(field.Names)
			}
			require.LessOrEqual(t, methods, maxInterfaceMethods, "%s: divide %s by its users", file, spec.Name)
		}
		return true
	})
}
