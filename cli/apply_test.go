package cli

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// shopFile writes a file with a topic.
func shopFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "shop.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestApply_ShowsAsksAndMakesTheChanges(t *testing.T) {
	file := shopFile(t, "managed_by: shop\ntopics: {a: {workers: 5}}\n")
	none := says(200, `{"items": [], "next_cursor": null}`)
	stored := `{"topic": "a", "revision": 3, "workers": 5, "managed_by": "shop"}`
	topics := says(200, `{"items": [{"topic": "old", "revision": 7, "managed_by": "shop"}], "next_cursor": null}`)

	r := run(t, []string{"diff", "-f", file}, none, none, says(200, stored))
	require.Equal(t, failed, r.code, r.stderr)
	require.Equal(t, "+ create topic a\n    managed_by: shop\n    workers: 5\n1 to create, 0 to update, 0 to remove, "+
		"0 unchanged\n", r.stdout)
	require.Equal(t, "PUT /v1/topics/a?dry_run=true", r.requests[2])
	require.JSONEq(t, `{"workers": 5, "managed_by": "shop"}`, r.bodies[2])

	r = run(t, []string{"diff", "-f", file}, says(200, `{"items": [`+stored+`]}`), none)
	require.Equal(t, ok, r.code, r.stderr)
	require.Equal(t, "0 to create, 0 to update, 0 to remove, 1 unchanged\n", r.stdout)

	r = run(t, []string{"apply", "-f", file, "--prune"}, topics, none, none, says(200, stored))
	require.Equal(t, Usage, r.code)
	require.Contains(t, r.stderr, "pass --yes")
	require.Contains(t, r.stdout, "- remove topic old\n")
	require.Len(t, r.requests, 4, "nothing is changed")

	r = run(t, []string{"apply", "-f", file, "--prune", "--yes"}, topics, none, none, says(200, stored),
		says(200, stored), says(204, ""))
	require.Equal(t, ok, r.code, r.stderr)
	require.Equal(t, "created topic a\nremoved topic old\n", r.stderr)
	require.Equal(t, []string{"PUT /v1/topics/a *", `DELETE /v1/topics/old "7"`}, r.requests[4:])
}

func TestApply_PrunesAllOnlyIfThatIsMeant(t *testing.T) {
	file := shopFile(t, "managed_by: shop\ntopics:\n")
	none := says(200, `{"items": []}`)
	topics := says(200, `{"items": [{"topic": "old", "revision": 7, "managed_by": "shop"}], "next_cursor": null}`)
	for _, command := range []string{"apply", "diff"} {
		r := run(t, []string{command, "-f", file, "--prune"}, topics, none, none)
		require.Equal(t, Usage, r.code)
		require.Contains(t, r.stderr, "pass --prune-all")
		require.Empty(t, r.requests)
	}
	r := run(t, []string{"apply", "-f", file, "--prune-all", "--yes"}, topics, none, none, says(204, ""))
	require.Equal(t, ok, r.code, r.stderr)
	require.Equal(t, []string{`DELETE /v1/topics/old "7"`}, r.requests[3:])
}

func TestApply_ExitsWithWhatIsWrong(t *testing.T) {
	file := shopFile(t, "managed_by: shop\ntopics:\n  a: {workers: 0}\n")
	none := says(200, `{"items": []}`)
	r := run(t, []string{"apply", "-f", file}, none, none,
		says(422, `{"code": "invalid_field", "errors": [{"field": "/workers", "detail": "must be 1 to 10000"}]}`))
	require.Equal(t, refused, r.code)
	require.Contains(t, r.stderr,
		"ringback: the files have 1 fault; nothing is changed\n  "+file+":3: topic a: workers must be 1 to 10000\n")
	r = run(t, []string{"apply", "-f", file},
		says(200, `{"items": [{"topic": "a", "revision": 1, "managed_by": "mall"}]}`), none)
	require.Equal(t, conflict, r.code)
	require.Contains(t, r.stderr, "a is managed by mall")
	r = run(t, []string{"apply", "-f", file}, none, none, says(200, `{}`), says(412, `{"code": "revision_mismatch"}`))
	require.Equal(t, conflict, r.code)
	require.Contains(t, r.stderr, "0 of 1 change was made")
	r = run(t, []string{"apply", "-f", shopFile(t, "topcs: {}\n")}, none)
	require.Equal(t, Usage, r.code)
	require.Contains(t, r.stderr, "shop.yaml:1: topcs is not a key")
	require.Empty(t, r.requests)
	r = run(t, []string{"dump"}, says(403, `{"code": "forbidden"}`))
	require.Equal(t, refused, r.code)
	hidden := says(200, `{"items": [{"name": "s", "revision": 1, "job": {"body_text": "[redacted]"}}]}`)
	r = run(t, []string{"dump"}, none, hidden, says(200, `{"bodies": false}`))
	require.Equal(t, refused, r.code)
	require.Contains(t, r.stderr, "this token may not read bodies")
	require.Empty(t, r.stdout)
	r = run(t, []string{"dump"}, none, says(200, `{"items": [{"name": "s", "revision": 1, "state": "unreadable"}]}`))
	require.Equal(t, ok, r.code)
	require.Equal(t, "schedule s is left out: the server cannot read it\n", r.stderr)
}

func TestApply_ReadsFilesWithCommasAndTheInputOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a,b.yaml")
	require.NoError(t, os.WriteFile(file, []byte("managed_by: shop\ntopics: {}\n"), 0o600))
	none := says(200, `{"items": []}`)
	r := run(t, []string{"diff", "-f", file, "-f", file}, none, none)
	require.Equal(t, ok, r.code, r.stderr)
	r = run(t, []string{"diff", "-f", "-", "-f", "-"})
	require.Equal(t, Usage, r.code)
	require.Contains(t, r.stderr, "the standard input (-) is given twice")
}

func TestDiff_NeedsNoMarkUnlessItPrunes(t *testing.T) {
	file := shopFile(t, "topics: {a: {}}\n")
	answer := says(200, `{"items": [{"topic": "a", "revision": 1, "managed_by": "mall"}]}`)
	none := says(200, `{"items": []}`)
	r := run(t, []string{"diff", "-f", file}, answer, none)
	require.Equal(t, ok, r.code, r.stderr)
	for _, args := range [][]string{{"diff", "--prune"}, {"apply"}, {"apply", "--yes"}} {
		r = run(t, append(args, "-f", file))
		require.Equal(t, Usage, r.code, args)
		require.Contains(t, r.stderr, "managed_by is required")
	}
}

func TestDiff_ExitsWithOneOnlyForDifferences(t *testing.T) {
	file := shopFile(t, "managed_by: shop\ntopics: {a: {workers: 5}}\n")
	for _, path := range []string{filepath.Join(t.TempDir(), "none.yaml"), t.TempDir()} {
		for _, command := range []string{"diff", "apply"} {
			r := run(t, []string{command, "-f", path})
			require.Equal(t, Usage, r.code)
			require.Contains(t, r.stderr, filepath.Base(path))
		}
	}
	r := run(t, []string{"diff", "-f", file}, says(200, `{}`))
	require.Equal(t, Usage, r.code)
	require.Contains(t, r.stderr, "is not a list")
	r = run(t, []string{"diff", "-f", file}, says(503, `{"code": "store_unavailable"}`))
	require.Equal(t, Unavailable, r.code)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r = runUntil(ctx, t, []string{"diff", "-f", file})
	require.Equal(t, Usage, r.code, r.stderr)
}

func TestManifestCommands_HaveNoCurl(t *testing.T) {
	file := shopFile(t, "managed_by: shop\ntopics: {a: {workers: 5}}\n")
	for _, args := range [][]string{{"diff", "-f", file}, {"apply", "-f", file}, {"dump"}} {
		r := run(t, append(args, "-o", "curl"))
		require.Equal(t, Usage, r.code, args)
		require.Contains(t, r.stderr, "--output curl: there are many requests")
		require.Empty(t, r.stdout)
	}
}

func TestEdits_SayThatFilesUndoThem(t *testing.T) {
	r := run(t, []string{"topic", "set", "a", "workers=5"},
		says(200, `{"topic": "a", "revision": 4, "managed_by": "shop"}`))
	require.Equal(t, "a has revision 4\n", r.stdout)
	require.Equal(t, "it is managed by shop: the next ringback apply of its files undoes this change\n", r.stderr)
	r = run(t, []string{"topic", "set", "a", "workers=5"},
		says(200, `{"topic": "a", "revision": 4, "managed_by": null}`))
	require.Empty(t, r.stderr)
}
