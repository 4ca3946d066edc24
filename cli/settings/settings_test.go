package settings

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
	token, err := AddToken(dir, "prod", "prod-token-of-several\nanother\n")
	require.NoError(t, err)
	c, err := Load(dir)
	require.NoError(t, err)
	require.NoError(t, c.Add("prod", Context{Server: "https://prod.example", TokenFile: token, Namespace: "shop"}))
	require.NoError(t, c.Add("test", Context{Server: "https://test.example"}))
	require.NoError(t, c.Save(dir))
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
		flags  Flags
		env    map[string]string
		pinned bool
		want   Target
	}{
		"the current context": {
			want: Target{Server: "https://prod.example", Token: "prod-token-of-several", Namespace: "shop"},
		},
		"a project": {
			pinned: true, env: map[string]string{TokenVariable: "from-the-environment"},
			want: Target{Server: "https://test.example", Token: "from-the-environment", Namespace: "lab"},
		},
		"a variable": {
			pinned: true, env: map[string]string{ServerVariable: "http://a", NamespaceVariable: "n"},
			want: Target{Server: "http://a", Namespace: "n"}, // and no token: that of a context is for its server
		},
		"a context in a variable": {
			env:  map[string]string{ContextVariable: "prod", TokenVariable: "another"},
			want: Target{Server: "https://prod.example", Token: "prod-token-of-several", Namespace: "shop"},
		},
		"a flag": {
			flags: Flags{Server: "http://b"}, env: map[string]string{ContextVariable: "prod"},
			want: Target{Server: "http://b"},
		},
		"a context in a flag": {
			flags: Flags{Context: "prod", Namespace: "x"}, env: map[string]string{ServerVariable: "http://a"},
			want: Target{Server: "https://prod.example", Token: "prod-token-of-several", Namespace: "x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.pinned {
				pin(t)
			}
			got, err := Find(c.flags, c.env, dir, project)
			require.NoError(t, err)
			require.Equal(t, c.want, Target{Server: got.Server, Token: got.Token, Namespace: got.Namespace})
		})
	}
	got, err := Find(Flags{}, nil, t.TempDir(), project)
	require.NoError(t, err)
	require.Equal(t, DefaultServer, got.Server)
}

func TestFind_RefusesWhatIsNotClear(t *testing.T) {
	dir, project := home(t)
	for want, c := range map[string]struct {
		flags Flags
		env   map[string]string
	}{
		"--server cannot be combined with " +
			"--context": {flags: Flags{Server: "http://a", Context: "prod"}},
		"RINGBACK_SERVER cannot be combined with " +
			"RINGBACK_CONTEXT": {env: map[string]string{ServerVariable: "http://a", ContextVariable: "prod"}},
		"RINGBACK_TOKEN cannot be combined with RINGBACK_TOKEN_FILE": {
			flags: Flags{Context: "test"}, env: map[string]string{TokenVariable: "a", TokenFileVariable: "b"},
		},
		`--context: there is no context "nope" (there are: prod, test)`: {flags: Flags{Context: "nope"}},
		"--server: must be http:// or https://":                         {flags: Flags{Server: "http://user:pass@a"}},
		"no such file": {
			flags: Flags{TokenFile: filepath.Join(dir, "nope")},
		},
	} {
		_, err := Find(c.flags, c.env, dir, project)
		require.ErrorContains(t, err, want)
	}
	for _, text := range []string{"server = \"http://evil\"", "context", "token_file = \"x\""} {
		require.NoError(t, os.WriteFile(filepath.Join(project, ".ringback.toml"), []byte(text), 0o600))
		_, err := Find(Flags{}, nil, dir, project)
		require.ErrorContains(t, err, ".ringback.toml")
	}
}

func TestContexts_AreUsedAndRemoved(t *testing.T) {
	dir, _ := home(t)
	c, err := Load(dir)
	require.NoError(t, err)
	require.Equal(t, "prod", c.Current)
	require.NoError(t, c.Use("test"))
	require.NoError(t, c.Use("test"), "the one before stays")
	require.NoError(t, c.Use("-"))
	require.Equal(t, "prod", c.Current)
	require.ErrorIs(t, c.Use("nope"), ErrNoContext)
	require.NoError(t, c.Remove(dir, "prod"))
	require.NoFileExists(t, filepath.Join(dir, "prod.token"))
	require.Empty(t, c.Current)
	require.Error(t, c.Add("../x", Context{}))
	_, err = AddToken(dir, "x", " \n")
	require.Error(t, err)
}
