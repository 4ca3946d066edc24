package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// home returns a directory with two contexts, the current one prod, and a project below a folder.
func home(t *testing.T) (dir, project string) {
	t.Helper()
	dir = t.TempDir()
	token, err := addToken(dir, "prod", "prod-token-of-several\nanother\n")
	require.NoError(t, err)
	c, err := loadContexts(dir)
	require.NoError(t, err)
	require.NoError(t, c.Add("prod",
		serverContext{Server: "https://prod.example", TokenFile: token, Namespace: "shop"}))
	require.NoError(t, c.Add("test", serverContext{Server: "https://test.example"}))
	require.NoError(t, c.Save())
	project = filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, os.MkdirAll(project, 0o700))
	return dir, project
}

func TestFind_TakesTheFirstThatIsSet(t *testing.T) {
	dir, project := home(t)
	pin := func(t *testing.T) {
		t.Helper()
		file := filepath.Join(project, "..", ".ringback.toml")
		require.NoError(t, os.WriteFile(file, []byte("context = \"test\"\nnamespace = \"lab\"\n"), 0o600))
		t.Cleanup(func() { require.NoError(t, os.Remove(file)) })
	}
	for name, c := range map[string]struct {
		flags  targetFlags
		env    map[string]string
		pinned bool
		want   serverTarget
	}{
		"the current context": {
			want: serverTarget{Server: "https://prod.example", Token: "prod-token-of-several", Namespace: "shop"},
		},
		"a project": {
			pinned: true, env: map[string]string{tokenVariable: "from-the-environment"},
			want: serverTarget{Server: "https://test.example", Token: "from-the-environment", Namespace: "lab"},
		},
		"a variable": {
			pinned: true, env: map[string]string{serverVariable: "http://a", namespaceVariable: "n"},
			want: serverTarget{Server: "http://a", Namespace: "n"}, // and no token: that of a context is for its server
		},
		"a context in a variable": {
			env:  map[string]string{contextVariable: "prod", tokenVariable: "another"},
			want: serverTarget{Server: "https://prod.example", Token: "prod-token-of-several", Namespace: "shop"},
		},
		"a flag": {
			flags: targetFlags{Server: "http://b"}, env: map[string]string{contextVariable: "prod"},
			want: serverTarget{Server: "http://b"},
		},
		"a context in a flag": {
			flags: targetFlags{Context: "prod", Namespace: "x"}, env: map[string]string{serverVariable: "http://a"},
			want: serverTarget{Server: "https://prod.example", Token: "prod-token-of-several", Namespace: "x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.pinned {
				pin(t)
			}
			got, err := findTarget(c.flags, c.env, dir, project)
			require.NoError(t, err)
			require.Equal(t, c.want, serverTarget{Server: got.Server, Token: got.Token, Namespace: got.Namespace})
		})
	}
	got, err := findTarget(targetFlags{}, nil, t.TempDir(), project)
	require.NoError(t, err)
	require.Equal(t, defaultServer, got.Server)
}

func TestFind_RefusesWhatIsNotClear(t *testing.T) {
	dir, project := home(t)
	for want, c := range map[string]struct {
		flags targetFlags
		env   map[string]string
	}{
		"--server cannot be combined with " +
			"--context": {flags: targetFlags{Server: "http://a", Context: "prod"}},
		"RINGBACK_SERVER cannot be combined with " +
			"RINGBACK_CONTEXT": {env: map[string]string{serverVariable: "http://a", contextVariable: "prod"}},
		"RINGBACK_TOKEN cannot be combined with RINGBACK_TOKEN_FILE": {
			flags: targetFlags{Context: "test"}, env: map[string]string{tokenVariable: "a", tokenFileVariable: "b"},
		},
		`--context: there is no context "nope" (there are: prod, test)`: {flags: targetFlags{Context: "nope"}},
		"--server: must be http:// or https://": {
			flags: targetFlags{Server: "http://user:pass@a"},
		},
		"no such file": {
			flags: targetFlags{TokenFile: filepath.Join(dir, "nope")},
		},
	} {
		_, err := findTarget(c.flags, c.env, dir, project)
		require.ErrorContains(t, err, want)
	}
	for _, text := range []string{"server = \"http://evil\"", "context", "token_file = \"x\""} {
		require.NoError(t, os.WriteFile(filepath.Join(project, ".ringback.toml"), []byte(text), 0o600))
		_, err := findTarget(targetFlags{}, nil, dir, project)
		require.ErrorContains(t, err, ".ringback.toml")
	}
}

func TestContexts_AreUsedAndRemoved(t *testing.T) {
	dir, _ := home(t)
	c, err := loadContexts(dir)
	require.NoError(t, err)
	require.Equal(t, "prod", c.Current)
	require.NoError(t, c.Use("test"))
	require.NoError(t, c.Use("test"), "the one before stays")
	require.NoError(t, c.Use("-"))
	require.Equal(t, "prod", c.Current)
	require.ErrorIs(t, c.Use("nope"), errNoContext)
	require.NoError(t, c.Remove("prod"))
	require.NoFileExists(t, filepath.Join(dir, "prod.token"))
	require.Empty(t, c.Current)
	require.Error(t, c.Add("../x", serverContext{}))
	_, err = addToken(dir, "x", " \n")
	require.Error(t, err)
}
