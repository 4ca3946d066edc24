package packaging

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContributing_NamesTargetsAndFilesThatExist(t *testing.T) {
	text, makefile := read(t, "../CONTRIBUTING.md"), read(t, "../Makefile")
	targets := regexp.MustCompile("(?m)(?:^    |`)make ([a-z0-9-]+)").FindAllStringSubmatch(text, -1)
	require.Greater(t, len(targets), 5)
	for _, m := range targets {
		require.Regexp(t, `(?m)^`+m[1]+`:`, makefile, "make %s is no target", m[1])
	}
	for _, m := range regexp.MustCompile(`\b([A-Z]+)=\S`).FindAllStringSubmatch(text, -1) {
		if m[1] != "CI" {
			require.Regexp(t, `(?m)^`+m[1]+` +\?=`, makefile, "%s is no knob of the Makefile", m[1])
		}
	}
	paths := regexp.MustCompile("\\]\\(([^)#:]+)\\)|`((?:[a-z]+/)+[a-z_.]+)`|PKG=\\./(\\S+)").
		FindAllStringSubmatch(text, -1)
	require.Greater(t, len(paths), 5)
	for _, m := range paths {
		if m[2] == "testing/synctest" { // a package of the standard library
			continue
		}
		_, err := os.Stat(filepath.Join("..", m[1]+m[2]+m[3]))
		require.NoError(t, err)
	}
}
