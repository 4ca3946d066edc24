package arch

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// The price of a change: testdata/newfield/SUBJECT.diff has the changes of somebody who adds a field to jobs, to the
// policies of topics or to schedules, or a route. It is a diff as git writes it, without line numbers: a hunk is
// applied where its lines are, and they must be in the file once. The diffs are applied to a copy of the tree. An
// overlay of the go command would not do: tests read openapi.yaml and docs from the disk.

// subjects are the subjects with the number of files that each touches, without tests, CHANGELOG.md and what make
// generate writes, which the diffs do not have.
var subjects = []struct {
	name  string
	files int
}{{"job", 3}, {"topic", 2}, {"schedule", 2}, {"route", 7}}

// driftTests are the tests that compare the faces of the tree with each other, as prefixes of their names by package.
var driftTests = map[string][]string{
	"./api": {
		"TestOpenAPI_", "TestSchedules_HaveEveryFieldOfTheContract", "TestRoutes_ServeOnlyWhatTheTokenAllows",
		"TestConditions_",
	},
	"./cli":    {"TestCommands_CoverTheAPI"},
	"./client": {"TestOpenAPI_"},
	"./cmd/ringback": {
		"TestTexts_", "TestDocs_ListEveryCommand", "TestClientCommands_HaveAnExampleThatParses",
		"TestFaces_HaveTheNewFieldsAndTheRoute",
	},
	"./console/form":        {"TestForm_HasEveryMemberOnce"},
	"./job/codec":           {"TestFingerprint_CoversEveryField"},
	"./policy":              {"TestWithDefaults_FillsUnsetFields"},
	"./dispatcher/transfer": {"TestJobLine_HasEveryField"},
}

// hunk replaces lines of a file.
type hunk struct{ file, old, new string }

// readDiff returns the hunks of a subject.
func readDiff(t *testing.T, subject string) (hunks []hunk) {
	t.Helper()
	text, err := os.ReadFile("testdata/newfield/" + subject + ".diff")
	require.NoError(t, err)
	file := ""
	for line := range strings.Lines(string(text)) {
		switch h := len(hunks) - 1; {
		case strings.HasPrefix(line, "--- a/"), strings.HasPrefix(line, "--- /dev/null"): // a new file
		case strings.HasPrefix(line, "+++ b/"):
			file = strings.TrimSpace(line[len("+++ b/"):])
		case strings.HasPrefix(line, "@@"):
			hunks = append(hunks, hunk{file: file})
		case line[0] == '-':
			hunks[h].old += line[1:]
		case line[0] == '+':
			hunks[h].new += line[1:]
		default: // an empty line may lack its space
			context := strings.TrimPrefix(line, " ")
			hunks[h].old, hunks[h].new = hunks[h].old+context, hunks[h].new+context
		}
	}
	return hunks
}

func TestNewField_TouchesAsManyFilesAsCounted(t *testing.T) {
	for _, s := range subjects {
		files := make(map[string]bool)
		for _, h := range readDiff(t, s.name) {
			if !strings.HasSuffix(h.file, "_test.go") {
				files[h.file] = true
			}
		}
		t.Logf("%s: %d files\n  %s", s.name, len(files), strings.Join(slices.Sorted(maps.Keys(files)), "\n  "))
		require.Len(t, files, s.files, "a new %s has another price: lower its number in subjects, or the price", s.name)
	}
}

// faces_test.go, which is added to the copy, sends the new fields through every face and finds them at the end.
func TestNewField_IsOnEveryFace(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles most packages anew")
	}
	require.NoError(t, watch())
	dir := t.TempDir()
	copyTree(t, dir)
	for _, s := range subjects {
		for _, h := range readDiff(t, s.name) {
			h.apply(t, dir, s.name)
		}
	}
	faces, err := os.ReadFile("testdata/newfield/faces_test.go")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cmd/ringback/faces_test.go"), faces, 0o600))

	for _, generator := range [][2]string{ // as make generate
		{"AreThoseOfTheTypes", "./api"},
		{"TestTexts_AreTheComments", "./cmd/ringback"},
		{"TestDocs_ListEveryCommand", "./cmd/ringback"},
	} {
		runGo(t, dir, "test", "-run", generator[0], generator[1], "-update")
	}
	// go list -export compiles like go build, and does not link.
	runGo(t, dir, "list", "-export", "-f", "", "./...")
	patterns := slices.Concat(slices.Collect(maps.Values(driftTests))...)
	args := []string{"-v", "-vet=off", "-ldflags=-s -w", "-run", "^(" + strings.Join(patterns, "|") + ")"}
	out := runGo(t, dir, "test", append(args, slices.Sorted(maps.Keys(driftTests))...)...)
	for _, pattern := range patterns {
		ended := regexp.MustCompile(`(?m)^--- (PASS|SKIP): ` + pattern) // without Redis it is skipped, but not in CI
		require.True(t, ended.MatchString(out), "no test %s… was run: correct driftTests", pattern)
	}
}

// apply changes the file in a copy of the tree.
func (h hunk) apply(t *testing.T, dir, subject string) {
	t.Helper()
	path := filepath.Join(dir, h.file)
	text, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) || h.old != "" {
		require.NoError(t, err)
	}
	before := "\n" + string(text)
	require.Equal(t, 1, strings.Count(before, "\n"+h.old),
		"%s does not have these lines once: correct testdata/newfield/%s.diff, so that it fits what is there now\n%s",
		h.file, subject, h.old)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(before, "\n"+h.old, "\n"+h.new, 1)[1:]), 0o600))
}

// runGo runs the go command in a folder, and returns what it prints.
func runGo(t *testing.T, dir, subcommand string, args ...string) string {
	t.Helper()
	cmd := testkit.GoCommand(t.Context(), subcommand, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		passed := regexp.MustCompile(`(?m)^(ok|PASS|=== RUN| *--- PASS).*\n`)
		t.Fatalf("%v\n%s", err, passed.ReplaceAll(out, nil))
	}
	return string(out)
}

// copyTree copies the files of the tree, but for what was built and the history.
func copyTree(t *testing.T, dir string) {
	t.Helper()
	const root = "../.."
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, root)
		switch {
		case slices.Contains([]string{"/.git", "/bin", "/dist", "/bench", "/tools"}, name):
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(dir+name, 0o700)
		case !entry.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(dir+name, text, 0o600)
	}))
}
