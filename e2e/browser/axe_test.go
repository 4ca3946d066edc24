package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// installAxe returns the source of axe-core, from its npm package.
var installAxe = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ringback-axe-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, os.DirFS("axe")); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*testkit.MustCome)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("install axe-core: %w\n%s", err, out)
	}
	source, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(source), err
})

// axeViolation is a fault that axe-core found.
type axeViolation struct {
	ID     string   `json:"id"`
	Impact string   `json:"impact"` // minor, moderate, serious, critical
	Help   string   `json:"help"`
	Nodes  []string `json:"nodes"`
}

// checkAccess fails the test for serious faults of the page. rules are those that are run; none: all of WCAG 2.2 A and
// AA.
func (b *tab) checkAccess(what string, rules ...string) {
	b.t.Helper()
	source, err := installAxe()
	require.NoError(b.t, err)
	if !value[bool](b, `typeof window.axe === 'object'`) {
		b.eval(source)
	}
	only := `{type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}`
	if len(rules) > 0 {
		only = fmt.Sprintf(`{type: 'rule', values: ['%s']}`, strings.Join(rules, "', '"))
	}
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]axeViolation](`axe.run(document, {resultTypes: `+
		`['violations'], runOnly: `+only+`}).then((r) => r.violations.map((v) =>
		({id: v.id, impact: v.impact || '', help: v.help, nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, `+
		`200))})))`, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, what)
	for _, v := range found {
		assert.NotContains(b.t, []string{"serious", "critical"}, v.Impact, "%s: %s (%s): %s", what, v.ID, v.Help,
			strings.Join(v.Nodes, "\n"))
	}
}
