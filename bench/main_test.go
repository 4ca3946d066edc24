package main

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain lets the tests' program be run as a peer, as the real one is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == asPeer {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestFigures_AreChosenByName(t *testing.T) {
	all, err := choose(figures, "")
	require.NoError(t, err)
	require.Len(t, all, len(figures)-2, "not the soaks")

	some, err := choose(figures, "idle, post")
	require.NoError(t, err)
	require.Len(t, some, 2)
	require.Equal(t, "post", some[0].name, "in their own order")

	_, err = choose(figures, "post,nothing")
	require.ErrorContains(t, err, `"nothing"`)
}

func TestFigures_HaveUniqueNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, f := range figures {
		require.False(t, seen[f.name], f.name)
		seen[f.name] = true
		require.NotEmpty(t, f.title)
		require.NotNil(t, f.measure)
	}
	for _, p := range plots {
		require.True(t, seen[p.of], "a plot of %s", p.of)
	}
}

func TestSettings_RejectInvalidOnes(t *testing.T) {
	require.Equal(t, 2, run([]string{"-nonsense"}, io.Discard, io.Discard))
	require.Equal(t, 2, run([]string{"extra"}, io.Discard, io.Discard))
	require.Equal(t, 1, run([]string{"-only=nothing"}, io.Discard, io.Discard))
	require.Equal(t, 2, run([]string{asPeer, "nobody"}, io.Discard, io.Discard))
	require.Equal(t, 0, run([]string{"-list"}, io.Discard, io.Discard))
}
