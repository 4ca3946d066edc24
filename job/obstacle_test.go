package job

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What shows obstacles to people lists them all.
func TestObstacles_AreInTheContractTheClientAndTheDocs(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile("../" + path)
		require.NoError(t, err)
		return string(text)
	}
	contract, client := read("api/openapi.yaml"), read("client/job.go")
	waiting, lanes := read("docs/waiting.md"), read("docs/lanes.md")
	var kinds []string
	for code := range obstacles {
		kinds = append(kinds, code.Kind())
		require.Contains(t, []string{ofJob, ofLane, ofTopic}, code.Scope(), code)
		require.NotEmpty(t, obstacles[code].general, code)
		named := regexp.MustCompile(`\b` + string(code) + `\b`)
		require.Regexp(t, named, section(contract, "    Obstacle:", "        scope:"), "api/openapi.yaml: %s", code)
		require.Regexp(t, named, section(client, "type Obstacle struct", "Scope "), "client/job.go: %s", code)
		require.Contains(t, waiting, "| `"+code.Kind()+"` |", "docs/waiting.md")
		if code.Severity() > 0 {
			require.Contains(t, section(lanes, "| code | the lane |", "\n\n"), "`"+string(code)+"`", "docs/lanes.md")
		}
	}
	enum := section(section(contract, "    WaitingFor:", "    Obstacle:"), "enum: [", "]")
	slices.Sort(kinds)
	require.ElementsMatch(t, slices.Compact(kinds), strings.Split(enum, ", "), "api/openapi.yaml: WaitingFor")
	require.Empty(t, ObstacleCode("unknown").Kind())
}

// section returns the part of a text between a begin and an end.
func section(text, begin, end string) string {
	_, text, _ = strings.Cut(text, begin)
	text, _, _ = strings.Cut(text, end)
	return text
}
