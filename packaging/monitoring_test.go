package packaging

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An alertRule is a rule of alerts.yaml.
type alertRule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

// alertRules returns the rules of alerts.yaml.
func alertRules(t *testing.T) []alertRule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alertRule } }
	readYAML(t, "monitoring/alerts.yaml", &file)
	var all []alertRule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

// dashboardExprs returns the expressions of the dashboard by panel.
func dashboardExprs(t *testing.T) map[string][]string {
	t.Helper()
	var board struct {
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, "monitoring/dashboard.json")), &board))
	exprs := map[string][]string{}
	for _, variable := range board.Templating.List {
		if variable.Definition != "" {
			exprs["variable "+variable.Name] = []string{variable.Definition}
		}
	}
	taken := map[[2]int]string{}
	for _, panel := range board.Panels {
		if panel.Type != "row" {
			require.NotEmpty(t, panel.Targets, panel.Title)
		}
		require.NotContains(t, exprs, panel.Title, "two panels have this title")
		for _, target := range panel.Targets {
			exprs[panel.Title] = append(exprs[panel.Title], target.Expr)
		}
		require.LessOrEqual(t, panel.GridPos.X+panel.GridPos.W, 24, panel.Title)
		for x := range panel.GridPos.W {
			for y := range panel.GridPos.H {
				at := [2]int{panel.GridPos.X + x, panel.GridPos.Y + y}
				require.NotContains(t, taken, at, "%s lies on %s", panel.Title, taken[at])
				taken[at] = panel.Title
			}
		}
	}
	return exprs
}

func TestMonitoring_NamesMetricsAndLabelsThatExist(t *testing.T) {
	labels := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(ringback_\\w+)` \\| (\\w+) \\| (\\S+) \\|").
		FindAllStringSubmatch(read(t, "../docs/metrics.md"), -1) {
		names := []string{row[1]}
		if row[2] == "histogram" {
			names = []string{row[1] + "_bucket", row[1] + "_count", row[1] + "_sum"}
		}
		for _, name := range names {
			labels[name] = append(strings.Split(row[3], ","), "instance", "job", "le")
		}
	}
	require.NotEmpty(t, labels)
	exprs := dashboardExprs(t)
	for _, rule := range alertRules(t) {
		exprs[rule.Alert] = []string{rule.Expr}
	}
	for of, all := range exprs {
		for _, expr := range all {
			for _, selector := range compiled(`\b(ringback_\w+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(expr, -1) {
				require.Contains(t, labels, selector[1], "%s: %s", of, expr)
				for _, label := range submatches(`(\w+)(?:=~|!~|!=|=)"`, selector[2]) {
					require.Contains(t, labels[selector[1]], label, "%s: %s", of, expr)
				}
			}
			for _, by := range submatches(`\bby \(([^)]*)\)`, expr) {
				metric := compiled(`ringback_\w+`).FindString(expr)
				for label := range strings.SplitSeq(by, ", ") {
					require.Contains(t, labels[metric], label, "%s: %s", of, expr)
				}
			}
		}
	}
}

func TestMonitoring_EachAlertIsDocumentedAndSaysWhatIsWrong(t *testing.T) {
	var names []string
	for _, rule := range alertRules(t) {
		names = append(names, rule.Alert)
		require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		require.True(t, slices.Contains([]string{"critical", "warning"}, rule.Labels["severity"]), rule.Alert)
	}
	require.ElementsMatch(t, names, submatches("(?m)^\\| `(Ringback\\w+)` \\|", read(t, "../docs/metrics.md")))
}
