package e2e

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ringback/ringback/internal/testkit"
)

// binary is the path of ringback, built once for all tests.
var binary string

// watch reads the metadata of all sources, so that the go command does not use cached results when one has changed.
var watch = sync.OnceValue(func() error {
	return filepath.WalkDir("..", func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == ".git" {
			return fs.SkipDir
		}
		return err
	})
})

func TestMain(m *testing.M) {
	if os.Getenv(outboxLife) != "" {
		if err := runOutboxProgram(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	flag.Parse()
	if testing.Short() { // every test needs the binary
		return 0
	}
	dir, err := os.MkdirTemp("", "ringback-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.MustCome)
	defer cancel()
	binary = filepath.Join(dir, "ringback")
	if out, err := goBuild(ctx, "-o", binary, "../cmd/ringback").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build ringback: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// goBuild is go build with the flags of all tests; benchmarks have those of the release.
func goBuild(ctx context.Context, args ...string) *exec.Cmd {
	if flag.Lookup("test.bench").Value.String() != "" {
		flags := []string{"build", "-trimpath", "-tags=validator_novalidatefn"}
		return exec.CommandContext(ctx, "go", append(flags, args...)...)
	}
	return testkit.GoCommand(ctx, "build", args...)
}
