package e2e

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// binary is ringback, built once for all tests.
var binary string

// watch walks over the sources, so that the go command, which remembers what a test has looked at, runs these again when
// any of them has changed.
var watch = sync.OnceValue(func() error {
	return filepath.WalkDir("..", func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == ".git" {
			return fs.SkipDir
		}
		return err
	})
})

func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == fmt.Sprint(runtime.GOMAXPROCS(0)) {
		_ = parallel.Value.Set(fmt.Sprint(max(side, runtime.GOMAXPROCS(0)))) // a number is what it takes
	}
	os.Exit(buildAndRun(m))
}

// side is how many tests run side by side, on machines with fewer processors too: mostly they wait.
const side = 4

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ringback-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	binary = filepath.Join(dir, "ringback")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "../cmd/ringback")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build ringback: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
