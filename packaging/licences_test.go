package packaging

import (
	"debug/buildinfo"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/licences.md is written by make licences, which fails for a licence that may not be used.
func TestLicences_NameEveryModuleOfTheProgram(t *testing.T) {
	page, err := os.ReadFile("../docs/licences.md")
	require.NoError(t, err)
	info, err := buildinfo.ReadFile(binary)
	require.NoError(t, err)
	rows := 0
	for _, dep := range info.Deps {
		require.Contains(t, string(page), "\n| "+dep.Path+" | "+dep.Version+" | ", "please run: make licences")
		rows++
	}
	assets, err := os.ReadFile("../console/assets/packages.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(assets)) {
		if name, found := strings.CutPrefix(line, "package "); found {
			name, version, _ := strings.Cut(strings.Fields(name)[0], "@")
			require.Contains(t, string(page), "\n| "+name+" | "+version+" | ", "please run: make licences")
			rows++
		}
	}
	const others = 3 + 2 // the heading and the standard library; modules that the program contains on macOS only
	require.LessOrEqual(t, strings.Count(string(page), "\n|"), rows+others,
		"a row names what the program does not contain: run make licences")
}

func TestLicence_IsTheApacheLicense(t *testing.T) {
	text, err := os.ReadFile("../LICENSE")
	require.NoError(t, err)
	require.Regexp(t, `^\s+Apache License\s+Version 2.0, January 2004\n`, string(text))
	notice, err := os.ReadFile("../NOTICE")
	require.NoError(t, err)
	require.Contains(t, string(notice), "The Ringback Authors")
}
