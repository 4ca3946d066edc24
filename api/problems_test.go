package api

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/response"
)

func TestProblems_TablePageDocsAndOpenAPIAgree(t *testing.T) {
	h := handlerOf(newFake())
	text := call(t, h, http.MethodGet, response.ProblemsPath, "")
	require.Equal(t, "text/plain; charset=utf-8", text.Header().Get("Content-Type"))
	page := call(t, h, http.MethodGet, response.ProblemsPath, "", "Accept", "text/html,application/xhtml+xml")
	require.Equal(t, "text/html; charset=utf-8", page.Header().Get("Content-Type"))
	require.Equal(t, "Accept", page.Header().Get("Vary"))

	var codes []any
	for _, p := range response.ProblemTypes() {
		codes = append(codes, string(p.Code))
		require.NotEmpty(t, http.StatusText(p.Status), p.Code)
		require.Contains(t, page.Body.String(), `<h2 id="`+string(p.Code)+`">`)
		require.Contains(t, text.Body.String(), "## "+string(p.Code)+"\n")
	}
	require.Equal(t, codes, document(t).at("components", "schemas", "Code", "enum").list())

	const file = "../docs/problems.md"
	docs, err := os.ReadFile(file)
	require.NoError(t, err)
	intro, _, _ := strings.Cut(string(docs), "\n## ")
	want := intro + text.Body.String()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(docs), "make it with: go test ./api -run Problems -update")
}

func TestProblems_GoldenAnswersHaveKnownCodes(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	seen := 0
	object := regexp.MustCompile(`\{"type":"[^"]*","code":.*?"errors":\[[^\]]*\]\}`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, string(text), "about:blank", file)
		for _, found := range object.FindAll(text, -1) {
			var p problemBody
			require.NoError(t, json.Unmarshal(found, &p), "%s: %s", file, found)
			requireKnownProblem(t, p)
			seen++
		}
	}
	require.Greater(t, seen, 8)
}

// requireKnownProblem requires that a problem has a code of the table, with its status, title and type.
func requireKnownProblem(t testing.TB, p problemBody) {
	t.Helper()
	for _, known := range response.ProblemTypes() {
		if string(known.Code) == p.Code {
			require.Equal(t, known.Status, p.Status)
			require.Equal(t, known.Title, p.Title)
			require.Equal(t, response.ProblemsPath+"#"+p.Code, p.Type)
			return
		}
	}
	require.Fail(t, "the code is not in the table", "%+v", p)
}
