package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxInterfaceMethods is how many methods a reader holds in mind at a time, without those of embedded interfaces.
const maxInterfaceMethods = 8

func TestInterfaces_AreReadableAtAGlance(t *testing.T) {
	for _, r := range plan {
		if slices.ContainsFunc(unshipped, func(u string) bool { return within(module+"/"+r.pkg, u) }) {
			continue
		}
		files, err := filepath.Glob(filepath.Join("../..", r.pkg, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				checkInterfaces(t, file)
			}
		}
	}
}

// checkInterfaces fails the test for an interface with too many methods.
func checkInterfaces(t *testing.T, file string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
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
