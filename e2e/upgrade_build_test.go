package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// errNoHistory skips the upgrade tests, or fails them if CI=true. They need the program of the previous commit, or of
// the commit in the variable UPGRADE_FROM (a tag or a hash), which must exist. In a shallow clone that is its only
// commit; without a repository it is the program of these sources.
var errNoHistory = errors.New("the previous commit cannot be read from the repository: install git")

// previousAgent is the User-Agent of the previous commit's program.
const previousAgent = "Ringback/previous"

// previous returns the program of the previous commit, built once for all tests.
func previous(t testing.TB) string {
	t.Helper()
	program, err := buildPrevious()
	if errors.Is(err, errNoHistory) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	require.NoError(t, err)
	return program
}

var buildPrevious = sync.OnceValues(func() (program string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.MustCome)
	defer cancel()
	commit, err := previousCommit(ctx, os.Getenv("UPGRADE_FROM"))
	if err != nil {
		return "", err
	}
	dir := ".."
	if commit != "" {
		sources, err := git(ctx, "archive", "--format=tar", commit)
		if err != nil {
			return "", err
		}
		dir = filepath.Join(filepath.Dir(binary), "previous")
		if err := unpack(dir, sources); err != nil {
			return "", fmt.Errorf("unpack the sources of %s: %w", commit, err)
		}
	}
	program = filepath.Join(filepath.Dir(binary), "ringback-previous")
	// With the flags of the program under test, for which the packages that are equal were compiled.
	build := goBuild(ctx, "-buildvcs=false", "-ldflags=-X main.version=previous", "-o", program, "./cmd/ringback")
	build.Dir = dir
	build.Env = append(build.Env, "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", commit, err, out)
	}
	return program, nil
})

// previousCommit returns the commit to compare with: the named one; else HEAD if the program's sources have changed
// since, else HEAD's first parent. It returns nothing without a repository.
func previousCommit(ctx context.Context, named string) (string, error) {
	if named != "" {
		commit, err := git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", named+"^{commit}")
		if err != nil {
			return "", fmt.Errorf("UPGRADE_FROM=%s is not in this repository: %w", named, err)
		}
		return strings.TrimSpace(string(commit)), nil
	}
	if _, err := os.Lstat(filepath.Join("..", ".git")); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if _, err := exec.LookPath("git"); err != nil {
		return "", fmt.Errorf("%w: %w", errNoHistory, err)
	}
	changed, err := git(ctx, "status", "--porcelain", "--untracked-files=no", "--", ".",
		":(exclude)*_test.go", ":(exclude)*.md")
	if err != nil {
		return "", err
	}
	wanted := "HEAD~1"
	if len(changed) > 0 {
		wanted = "HEAD"
	}
	shallow, err := git(ctx, "rev-parse", "--is-shallow-repository")
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(string(shallow)) == "true" {
		wanted = "HEAD"
	}
	commit, err := git(ctx, "rev-parse", "--verify", "--quiet", wanted+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoHistory, err)
	}
	return strings.TrimSpace(string(commit)), nil
}

func TestUpgrade_FailsWithoutTheNamedCommit(t *testing.T) {
	t.Parallel()
	for _, named := range []string{"no-such-commit", "--help"} {
		_, err := previousCommit(t.Context(), named)
		require.ErrorContains(t, err, "UPGRADE_FROM="+named+" is not in this repository")
		require.NotErrorIs(t, err, errNoHistory)
	}
}

// git runs git in the repository of the sources without writing to it, whatever repository the environment names (as in
// a hook) and whatever user owns the files.
func git(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", "..", "-c", "safe.directory=*"}, args...)...)
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "GIT_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_OPTIONAL_LOCKS=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// unpack extracts a tar archive to a new folder.
func unpack(dir string, archive []byte) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing is written through it
	files := tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch header.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(filepath.FromSlash(strings.TrimSuffix(header.Name, "/")), 0o700)
		case tar.TypeReg:
			var text []byte
			if text, err = io.ReadAll(files); err == nil {
				err = root.WriteFile(filepath.FromSlash(header.Name), text, 0o600)
			}
		}
		if err != nil {
			return err
		}
	}
}
