package arch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/gobuild"
	"github.com/ringback/ringback/internal/testlevel"
)

// An insertion is text that is added to a file after a line.
type insertion struct{ file, after, text string }

// newField has the changes that add an editable field to jobs, a note of at most ten bytes. Outside the code it needs a
// row in docs/job-fields.md, which package packaging checks.
var newField = []insertion{
	{"job/spec.go", "	Labels      map[string]string   `json:\"labels,omitzero\"`\n", "	Note        string `json:\"note,omitzero\"`\n"},
	{
		"job/spec.go", "var specRules = []rule{\n",
		"	{field: \"Note\", name: \"note\", tags: \"max=10\", message: \"must be at most 10 B\"},\n",
	},
	{
		"job/codec/fields.go", "var specFields = []field[job.Spec]{\n",
		"	textField(59, \"note\", func(s *job.Spec) *string { return &s.Note }),\n",
	},
	{
		"api/request/job.go", "var JobFields = withPointers(map[string]JobField{\n",
		"	\"note\": specField(nullable, func(s *job.Spec) *string { return &s.Note }, (*decoder).text),\n",
	},
	{"api/response/job.go", "	o.TextOrNull(\"url\", j.URL)\n", "	o.TextOrNull(\"note\", j.Note)\n"},
	{"api/openapi.yaml", "        body: {description: \"Any JSON, delivered byte for byte.\"}\n", "        note: {type: string, maxLength: 10}\n"},
	{
		"api/openapi.yaml", "        retries: {type: integer, minimum: 0, maximum: 1000, description: \"Cannot be null.\"}\n",
		"        note: {type: [string, \"null\"], maxLength: 10}\n",
	},
	{"api/openapi.yaml", "        - content_type\n        - retries\n", "        - note\n"},
	{"api/openapi.yaml", "        content_type: {type: [string, \"null\"]}\n        retries: {type: [integer, \"null\"]}\n", "        note: {type: [string, \"null\"]}\n"},
}

// The field is added to copies of the files, which the go command reads in their place.
func TestNewField_TouchesFiveFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles most packages anew")
	}
	require.NoError(t, watch())
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	files := make(map[string]string)
	for _, add := range newField {
		text, read := files[add.file]
		if !read {
			b, err := os.ReadFile(filepath.Join(root, add.file))
			require.NoError(t, err)
			text = string(b)
		}
		require.Equal(t, 1, strings.Count(text, add.after), "%s has another form: adapt the test to %q", add.file, add.after)
		files[add.file] = strings.Replace(text, add.after, add.after+add.text, 1)
	}
	require.LessOrEqual(t, len(files), 5)

	dir := t.TempDir()
	overlay := map[string]string{
		filepath.Join(root, "internal/arch/newfield_overlay_test.go"): filepath.Join(root, "internal/arch/testdata/newfield.go"),
	}
	for name, text := range files {
		copied := filepath.Join(dir, strconv.Itoa(len(overlay)))
		require.NoError(t, os.WriteFile(copied, []byte(text), 0o600))
		overlay[filepath.Join(root, name)] = copied
	}
	replace, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, replace, 0o600))
	// Both engines store a job's fields by job/codec alone: that they do takes compiling them anew, for make test-all.
	packages := testlevel.Of([]string{"./job/codec", "./api"}, []string{"./internal/arch", "./job/codec", "./api"})
	args := append([]string{"-vet=off", "-overlay", list, "-run", "Note|Fingerprint|OpenAPI"}, packages...)
	cmd := gobuild.Command(t.Context(), "test", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
