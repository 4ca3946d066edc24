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

// runDist runs packaging/dist in a copy of its input, with commands that write their settings instead of a program, its
// licences and packages. It returns the folder dist.
func runDist(t *testing.T, version string) string {
	t.Helper()
	root, bin := t.TempDir(), t.TempDir()
	const inside = `mkdir -p "$6"; echo "$7" >"$6/MODULE"; echo "$SOURCE_DATE_EPOCH" >"${8%/*}/sbom.cdx.json"`
	files := map[string]string{
		"README.md": "readme", "CHANGELOG.md": "changes", "LICENSE": "license", "NOTICE": "notice",
		"ARCHITECTURE.md": "design", "CONTRIBUTING.md": "rules", "SECURITY.md": "faults", "api/openapi.yaml": "api",
		"docs/README.md": "index", "packaging/dist": read(t, "dist"), "packaging/packages/nfpm.yaml": "",
		"packaging/systemd/ringback.service": "unit", "packaging/systemd/ringback.env": "env",
		"packaging/helm/ringback/Chart.yaml": "name: ringback\nversion: 0\nappVersion: x\n",
		"bin/nfpm":                           "#!/bin/sh\nls -l . ../packages >\"$7ringback_${PACKAGE}_$ARCH.$5\"\n",
		bin + "/go": "#!/bin/sh\n" + `[ "$3" != run ] || { ` + inside + "; exit; }\n" +
			"for a; do case $prev in -o) out=$a;; -tags|-ldflags) flags=\"$flags $a\";; esac; prev=$a; done\n" +
			`printf '#!/bin/sh\necho "$@"\n# %s/%s cgo %s %s%s%s' "$GOOS" "$GOARCH" "$CGO_ENABLED" "$GOFLAGS" ` +
			`"$GOEXPERIMENT" "$flags" >"$out"; chmod 755 "$out"` + "\n",
	}
	for name, text := range files {
		path := name
		if !filepath.IsAbs(name) {
			path = filepath.Join(root, name)
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		mode := os.FileMode(0o600)
		if strings.HasPrefix(text, "#!/bin/sh") {
			mode = 0o700
		}
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
	}
	dist := filepath.Join(root, "dist")
	packDist(t, bin, dist, filepath.Join(root, "packaging/dist"), version)
	return dist
}

// packDist runs a script of releases with the go command of a folder.
func packDist(t *testing.T, bin, dist string, args ...string) {
	t.Helper()
	require.NoError(t, watch())
	cmd := exec.CommandContext(t.Context(), "bash", args...)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "SOURCE_DATE_EPOCH=1700000000", "DIST="+dist,
		"GOFLAGS=-tags=mine", "GOEXPERIMENT=mine", "GOOS=plan9", "CGO_ENABLED=1", "TZ=Asia/Tokyo")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
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
	missing(t, "GNU tar")
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
	dist := runDist(t, "v1.2.3")
	sums := read(t, filepath.Join(dist, "SHA256SUMS"))
	require.Equal(t, sums, read(t, filepath.Join(runDist(t, "v1.2.3"), "SHA256SUMS")),
		"the same bytes wherever it is packed")
	require.Equal(t, 4+2*2+1, strings.Count(sums, "\n"))
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"} {
		name := "ringback-v1.2.3-" + strings.ReplaceAll(platform, "/", "-")
		archive := filepath.Join(dist, name+".tar.gz")
		require.Contains(t, sums, fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256([]byte(read(t, archive))), name))
		want := map[string]string{
			"ringback": "#!/bin/sh\necho \"$@\"\n# " + platform + " cgo 0 -mod=readonly validator_novalidatefn " +
				"-s -w -X main.version=v1.2.3",
			"README.md": "readme", "docs/README.md": "index", "CHANGELOG.md": "changes",
			"ARCHITECTURE.md": "design", "CONTRIBUTING.md": "rules", "SECURITY.md": "faults", "api/openapi.yaml": "api",
			"LICENSE": "license", "NOTICE": "notice", "licenses/MODULE": "v1.2.3\n", "sbom.cdx.json": "1700000000\n",
			"man/ringback.1": "__man\n", "completions/ringback.bash": "completion bash\n",
			"completions/ringback.zsh": "completion zsh\n", "completions/ringback.fish": "completion fish\n",
		}
		if arch, isLinux := strings.CutPrefix(platform, "linux/"); isLinux {
			want["ringback.service"], want["ringback.env"] = "unit", "env"
			for _, kind := range []string{"deb", "rpm"} {
				list := read(t, filepath.Join(dist, "ringback_1.2.3_"+arch+"."+kind))
				require.Regexp(t, `(?m)^-rw-r--r-- .* sbom.cdx.json$`, list)
				require.Regexp(t, `(?m)^-rw-r--r-- .* nfpm.yaml$`, list)
			}
		}
		found := make(map[string]string)
		for file, text := range archiveFiles(t, archive) {
			found[strings.TrimPrefix(file, name+"/")] = text
		}
		require.Equal(t, want, found)
	}
}

func TestDist_GivesPackagesAndChartsVersionsThatTheyAllow(t *testing.T) {
	requireGNUTar(t)
	for version, want := range map[string][2]string{
		"v0.2.0":                  {"0.2.0", "0.2.0"},
		"v0.2.0-rc.1":             {"0.2.0~rc.1", "0.2.0-rc.1"},
		"v0.2.0-5-g0abc123-dirty": {"0.2.0+5.g0abc123.dirty", "0.2.0-5-g0abc123-dirty"},
		"v0.2.0-rc.1-5-g0abc123":  {"0.2.0~rc.1+5.g0abc123", "0.2.0-rc.1-5-g0abc123"},
		"dev":                     {"0~dev", "0.0.0-build-dev"},
		"0123456-dirty":           {"0~0123456.dirty", "0.0.0-build-0123456-dirty"},
	} {
		dist := runDist(t, version)
		require.FileExists(t, filepath.Join(dist, "ringback_"+want[0]+"_arm64.rpm"))
		chart := archiveFiles(t, filepath.Join(dist, "ringback-chart-"+want[1]+".tgz"))
		require.Equal(t, map[string]string{
			"ringback/Chart.yaml": "name: ringback\nversion: " + want[1] + "\nappVersion: \"" + version + "\"\n",
		}, chart)
	}
}
