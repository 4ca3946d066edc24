package packaging

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// runDist runs packaging/dist in a copy of its input, with a go command that writes its settings instead of a binary.
// It returns the folder dist.
func runDist(t *testing.T, license bool) string {
	t.Helper()
	require.NoError(t, watch())
	root, bin := t.TempDir(), t.TempDir()
	files := map[string]string{
		"README.md": "readme", "CHANGELOG.md": "changes", "docs/README.md": "index", "packaging/dist": read(t, "dist"),
		"packaging/systemd/ringback.service": "unit", "packaging/systemd/ringback.env": "env",
		"console/assets/vendor/htmx-LICENSE.txt": "license of htmx", "console/assets/vendor/htmx.min.js": "script",
	}
	if license {
		files["LICENSE"] = "license"
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	fake := "#!/bin/sh\nfor a; do case $prev in -o) out=$a;; -tags|-ldflags) flags=\"$flags $a\";; esac; " +
		"prev=$a; done\n" +
		`printf '%s/%s cgo %s %s%s%s' "$GOOS" "$GOARCH" "$CGO_ENABLED" "$GOFLAGS" "$GOEXPERIMENT" "$flags" >"$out"; ` +
		`chmod 755 "$out"` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "go"), []byte(fake), 0o700))

	cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "packaging/dist"), "v1.2.3")
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "SOURCE_DATE_EPOCH=1700000000",
		"GOFLAGS=-tags=mine", "GOEXPERIMENT=mine", "CGO_ENABLED=1", "TZ=Asia/Tokyo")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return filepath.Join(root, "dist")
}

// requireGNUTar skips the test without GNU tar, except in CI.
func requireGNUTar(t *testing.T) {
	t.Helper()
	for _, name := range []string{"gtar", "tar"} {
		if out, err := exec.CommandContext(t.Context(), name, "--version").Output(); err == nil &&
			strings.Contains(string(out), "GNU") {
			return
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("GNU tar is needed and was not found")
	}
	t.Skip("GNU tar was not found")
}

// archiveFiles returns the files of an archive by name, and checks their tar headers.
func archiveFiles(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	plain, err := gzip.NewReader(file)
	require.NoError(t, err)
	require.True(t, plain.ModTime.IsZero(), "gzip notes the time")
	require.Empty(t, plain.Name)
	held := make(map[string]string)
	for in, last := tar.NewReader(plain), ""; ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return held
		}
		require.NoError(t, err)
		require.Greater(t, h.Name, last, "sorted")
		last = h.Name
		require.Equal(t, time.Unix(1700000000, 0), h.ModTime)
		require.Equal(t, []any{0, 0, "", ""}, []any{h.Uid, h.Gid, h.Uname, h.Gname})
		if h.Typeflag == tar.TypeDir {
			continue
		}
		mode := int64(0o644)
		if filepath.Base(h.Name) == "ringback" {
			mode = 0o755
		}
		require.Equal(t, mode, h.Mode, h.Name)
		text, err := io.ReadAll(in)
		require.NoError(t, err)
		held[h.Name] = string(text)
	}
}

func TestDist_BuildsOneArchivePerPlatformAndChecksums(t *testing.T) {
	requireGNUTar(t)
	for _, license := range []bool{true, false} {
		dist := runDist(t, license)
		sums := read(t, filepath.Join(dist, "SHA256SUMS"))
		require.Equal(t, sums, read(t, filepath.Join(runDist(t, license), "SHA256SUMS")),
			"the same bytes wherever it is packed")
		require.Equal(t, 4, strings.Count(sums, "\n"))
		for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"} {
			name := "ringback-v1.2.3-" + strings.ReplaceAll(platform, "/", "-")
			archive := filepath.Join(dist, name+".tar.gz")
			require.Contains(t, sums, fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256([]byte(read(t, archive))), name))
			want := map[string]string{
				name + "/ringback": platform + " cgo 0 -mod=readonly validator_novalidatefn " +
					"-s -w -X main.version=v1.2.3",
				name + "/README.md":      "readme",
				name + "/docs/README.md": "index",
				name + "/CHANGELOG.md":   "changes",

				name + "/licenses/htmx-LICENSE.txt": "license of htmx",
			}
			if license {
				want[name+"/LICENSE"] = "license"
			}
			if strings.HasPrefix(platform, "linux/") {
				want[name+"/ringback.service"], want[name+"/ringback.env"] = "unit", "env"
			}
			require.Equal(t, want, archiveFiles(t, archive))
		}
	}
}
