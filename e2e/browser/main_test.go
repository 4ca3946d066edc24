package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// programs are the names of the browser: on Debian, other Linux systems, and macOS.
var programs = []string{
	"chromium", "chromium-browser", "google-chrome",
	"/Applications/Chromium.app/Contents/MacOS/Chromium",
	"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
}

// shared is the browser of all tests.
var shared sharedBrowser

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
	if err := shared.stop(); err != nil {
		fmt.Fprintf(os.Stderr, "stop the browser: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

// sharedBrowser is a browser that the first test starts.
type sharedBrowser struct {
	once sync.Once
	ctx  context.Context // of its first tab, which no test uses; nil unless it runs
	err  error
}

// start starts the program at path unless it runs already. It returns the parent context of all tabs.
func (b *sharedBrowser) start(path string) (context.Context, error) {
	b.once.Do(func() {
		// By default it is headless, without background networking and sync.
		ctx, cancel := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(
			chromedp.ExecPath(path),
			chromedp.NoSandbox, // containers lack the namespaces that the sandbox needs
			chromedp.DisableGPU,
			chromedp.Flag("disable-component-update", true),
			chromedp.Flag("host-resolver-rules",
				"MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE [::1], EXCLUDE localhost"),
		))
		if b.err = chromedp.Do(ctx); b.err != nil {
			cancel()
			return
		}
		b.ctx = ctx
	})
	return b.ctx, b.err
}

// stop ends the browser if it was started, and deletes its files.
func (b *sharedBrowser) stop() error {
	if b.ctx == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(b.ctx, testkit.MustCome)
	defer cancel()
	return chromedp.Cancel(ctx)
}

// findProgram finds a browser, or skips the test, or fails it when CI=true.
func findProgram(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("no browser with -short")
	}
	var errs []error
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if err == nil {
			return path
		}
		errs = append(errs, err)
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("chromium is needed and was not found: %v", errors.Join(errs...))
	}
	t.Skip("chromium was not found")
	return ""
}

// newTab returns the context of a new tab with a new profile, for the actions of chromedp. It ends with the test, or
// after half an hour.
func newTab(t *testing.T) context.Context {
	t.Helper()
	parent, err := shared.start(findProgram(t))
	require.NoError(t, err, "start the browser")
	tab, closeTab := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	require.NoError(t, chromedp.Do(tab), "open a tab")
	ctx, cancel := context.WithTimeout(tab, 30*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
