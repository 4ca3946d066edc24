package packaging

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// packPackages runs packaging/dist with the program of these tests in place of a build, and returns the folder dist.
func packPackages(t *testing.T) string {
	t.Helper()
	requireGNUTar(t)
	if _, err := os.Stat("../bin/nfpm"); err != nil {
		missing(t, "bin/nfpm, of make tools,")
	}
	compiler, err := exec.LookPath("go")
	require.NoError(t, err)
	bin, dist := t.TempDir(), filepath.Join(t.TempDir(), "dist")
	fake := "#!/bin/sh\n[ \"$1\" = build ] || exec " + compiler + " \"$@\"\n" +
		"for a; do [ \"$prev\" != -o ] || cp " + binary + " \"$a\"; prev=$a; done\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "go"), []byte(fake), 0o700))
	packDist(t, bin, dist, "./dist", "v1.2.3", "linux/"+runtime.GOARCH)
	return dist
}

// output runs a command and returns what it prints to stdout. It may print nothing to stderr.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		missing(t, name)
	}
	var errs strings.Builder
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=120"), &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%s%s", out, &errs)
	require.Empty(t, errs.String())
	return string(out)
}

// installedModes are the modes of installed files that are not 0644.
var installedModes = map[string]os.FileMode{
	"/usr/bin/ringback": 0o755, "/etc/ringback/ringback.env": 0o600, "/etc/ringback/token": 0o600,
}

// It is installed, upgraded, removed and purged in a folder, with the scripts of the package.
func TestPackages_InstallRunAndLeave(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the packages are for Linux")
	}
	dist, root := packPackages(t), t.TempDir()
	require.Equal(t, read(t, filepath.Join(dist, "SHA256SUMS")), read(t, filepath.Join(packPackages(t), "SHA256SUMS")))
	deb := filepath.Join(dist, "ringback_1.2.3_"+runtime.GOARCH+".deb")
	state := filepath.Join(root, "var/lib/dpkg")
	require.NoError(t, os.MkdirAll(state, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(state, "status"), nil, 0o600))
	dpkg := func(args ...string) string {
		args = append([]string{
			"dpkg", "--root=" + root, "--log=/dev/null", "--force-bad-path", "--force-script-chrootless",
			"--path-include=/*", // images without documentation exclude some
		}, args...)
		if os.Geteuid() != 0 { // dpkg sets owners
			args = append([]string{"unshare", "--map-root-user"}, args...)
		}
		return output(t, args[0], args[1:]...)
	}
	require.Contains(t, dpkg("--install", deb), "Start it, now and at each boot:  systemctl enable --now ringback")
	files := make(map[string]bool)
	require.NoError(t, filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || path == state {
			return filepath.SkipDir
		}
		if name := strings.TrimPrefix(path, root); !entry.IsDir() {
			info, err := entry.Info()
			require.NoError(t, err)
			mode, isKnown := installedModes[name]
			if !isKnown {
				mode = 0o644
			}
			require.Equal(t, mode, info.Mode(), name)
			require.True(t, info.ModTime().Unix() == 1700000000 || name == "/etc/ringback/token", name)
			files[name] = true
		}
		return nil
	}))
	require.Equal(t, read(t, "monitoring/alerts.yaml"),
		archiveFiles(t, filepath.Join(dist, "ringback-chart-1.2.3.tgz"))["ringback/files/alerts.yaml"], "not a link")
	for _, name := range []string{
		"/usr/share/bash-completion/completions/ringback", "/usr/share/zsh/vendor-completions/_ringback",
		"/usr/share/fish/vendor_completions.d/ringback.fish", "/usr/share/doc/ringback/copyright",
		"/usr/share/doc/ringback/docs/deploy.md", "/etc/ringback/ringback.env", "/etc/ringback/token",
	} {
		require.Contains(t, files, name)
	}
	require.Equal(t, strings.ReplaceAll(read(t, unitPath), "ExecStart=/usr/local/bin/", "ExecStart=/usr/bin/"),
		read(t, root+"/usr/lib/systemd/system/ringback.service"))

	require.Equal(t, output(t, binary, "version"), output(t, root+"/usr/bin/ringback", "version"))
	requireUnitStarts(t, root)
	token := read(t, root+"/etc/ringback/token")
	code, _, stderr := ringback(t, []string{"RINGBACK_TOKEN_FILE=" + root + "/etc/ringback/token"}, "serve", "--check")
	require.Zero(t, code, stderr)
	page := output(t, "man", "--warnings", "--local-file", root+"/usr/share/man/man1/ringback.1.gz")
	require.Contains(t, page, "ringback - send HTTP callbacks")
	_, service, _ := strings.Cut(page, "\nRUN A SERVER\n")
	require.Regexp(t, `(?s)^   serve \[flags\]\n.*--max-body=.*\$RINGBACK_MAX_BODY`, service)
	requireBill(t, root+"/usr/share/doc/ringback")

	// The same files are in the other package, but for what differs between systems.
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	for line := range strings.Lines(output(t, "rpm", "--query", "--dump", "--package",
		filepath.Join(dist, "ringback-1.2.3-1."+machine+".rpm"))) {
		field := strings.Fields(line) // path size mtime digest mode owner group …
		if strings.HasPrefix(field[4], "04") {
			continue
		}
		name := strings.Replace(field[0], "site-functions", "vendor-completions", 1)
		require.Contains(t, files, name)
		mode, isKnown := installedModes[name]
		if !isKnown {
			mode = 0o644
		}
		require.Equal(t, []string{"1700000000", fmt.Sprintf("010%04o", mode), "root", "root"},
			[]string{field[2], field[4], field[5], field[6]}, name)
		delete(files, name)
	}
	require.Equal(t, map[string]bool{"/etc/ringback/token": true, "/usr/share/doc/ringback/copyright": true}, files)

	require.NotContains(t, dpkg("--install", deb), "Start it", "an upgrade")
	require.Equal(t, token, read(t, root+"/etc/ringback/token"))
	require.NoError(t, os.MkdirAll(root+"/var/lib/private/ringback", 0o700))
	dpkg("--remove", "ringback")
	require.NoFileExists(t, root+"/usr/bin/ringback")
	require.Equal(t, token, read(t, root+"/etc/ringback/token"))
	require.Contains(t, dpkg("--purge", "ringback"), "database of Ringback is still in /var/lib/private/ringback")
	require.NoDirExists(t, root+"/etc")
	require.DirExists(t, root+"/var/lib/private/ringback")
}

// requireUnitStarts asks systemd, where it is installed, whether it would start the unit of a system in a folder.
func requireUnitStarts(t *testing.T, root string) {
	t.Helper()
	targets, err := filepath.Glob("/usr/lib/systemd/system/*.target")
	require.NoError(t, err)
	if _, err := exec.LookPath("systemd-analyze"); err != nil || len(targets) == 0 {
		t.Log("systemd is not installed: its verdict on the unit is not known")
		return
	}
	units := filepath.Join(root, "usr/lib/systemd/system")
	for _, target := range targets { // which the unit waits for
		name := filepath.Join(units, filepath.Base(target))
		require.NoError(t, os.WriteFile(name, []byte(read(t, target)), 0o600))
		defer func() { require.NoError(t, os.Remove(name)) }()
	}
	output(t, "systemd-analyze", "verify", "--man=no", "--root="+root, "ringback.service")
	require.NoError(t, os.Rename(root+"/usr/bin/ringback", root+"/program"))
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", "--root="+root,
		"ringback.service").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "/usr/bin/ringback is not executable", "it looks")
	require.NoError(t, os.Rename(root+"/program", root+"/usr/bin/ringback"))
}

// requireBill checks that a folder has a bill of materials with each module of the program, and their licences.
func requireBill(t *testing.T, folder string) {
	t.Helper()
	var bill struct {
		BOMFormat, SpecVersion string
		Metadata               struct {
			Timestamp string
			Component struct{ Version string }
		}
		Components []struct {
			Name, Purl string
			Licenses   []struct{ License struct{ ID, Name string } }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, folder+"/sbom.cdx.json")), &bill))
	require.Equal(t, []string{"CycloneDX", "1.6", "v1.2.3", "2023-11-14T22:13:20Z"},
		[]string{bill.BOMFormat, bill.SpecVersion, bill.Metadata.Component.Version, bill.Metadata.Timestamp})
	var found []string
	for _, c := range bill.Components {
		require.NotEmpty(t, c.Licenses, c.Name)
		found = append(found, c.Purl)
	}
	info, err := buildinfo.ReadFile(binary)
	require.NoError(t, err)
	for _, module := range info.Deps {
		require.Contains(t, found, "pkg:golang/"+module.Path+"@"+module.Version)
		require.DirExists(t, folder+"/licenses/"+module.Path)
	}
	require.Contains(t, found, "pkg:golang/std@"+strings.TrimPrefix(runtime.Version(), "go"))
	require.Len(t, found, len(info.Deps)+2, "and htmx")
}
