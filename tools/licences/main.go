// Command licences reads the licences of what the program of a folder contains, and fails for a text that it does not
// know, and for a licence that is not permissive. It prints docs/licences.md: the licences, as their texts say, and the
// notices that have to be passed on. For releases it also writes the texts into a folder, and bills of materials.
//
// Run it with make licences and make dist.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// permissive are the licences that ask for no more than to be passed on.
var permissive = []string{
	"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC",
	"MIT", "Unlicense", "Zlib",
}

// weakCopyleft are the modules that may have MPL-2.0: a changed file of theirs would have to be published. None is
// changed.
var weakCopyleft = []string{"github.com/hashicorp/go-cleanhttp", "github.com/hashicorp/go-retryablehttp"}

// reviewed are files that people have read, since they are more than the text of a licence: by the beginning of their
// SHA-256, so that a new version is read again.
var reviewed = map[string][]string{
	// modernc.org/libc LICENSE-3RD-PARTY.md: Go, musl and others
	"f597097efe3d": {"BSD-2-Clause", "BSD-3-Clause", "MIT", "public domain"},
	"5ae5bee3072a": nil,                                      // modernc.org/memory LICENSE-LOGO: where its logo is from
	"4194f8e7119b": {"BSD-3-Clause", "MIT", "public domain"}, // modernc.org/sqlite LICENSE-3RD-PARTY.md: section 1
	"8438c9c89b84": {"public domain"},                        // modernc.org/sqlite LICENSE-SQLITE
}

// minCoverage is the percentage of a file's words that belong to known licences.
const minCoverage = 75

var (
	licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|copyright)`)
	noticeFile  = regexp.MustCompile(`(?i)^notice`)
)

// The parts that are no modules.
const (
	goPart   = "Go's standard library"
	htmxPart = "htmx.org"
)

// part is a module, or files that are embedded.
type part struct {
	path, version string
	dirs          []string // that contain what is used, and their parents within the part
	licences      []string
	notice        string
	texts         map[string][]byte // by the names of the files, within the part
}

func main() {
	if len(os.Args) != 2 && len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: licences FOLDER [TEXTS VERSION BINARY…]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// run prints the page. For a release, of arguments as in the usage, it writes the texts and a bill of materials beside
// each binary instead.
func run(root string, release []string, out io.Writer) error {
	parts, err := modules(root)
	if err != nil {
		return err
	}
	embedded, err := htmx(root)
	if err != nil {
		return err
	}
	parts = append(parts, embedded)
	var faults []error
	for i := range parts {
		faults = append(faults, parts[i].read())
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if len(release) == 0 {
		return write(out, parts)
	}
	for _, p := range parts {
		faults = append(faults, p.writeTexts(release[0]))
	}
	for _, binary := range release[2:] {
		faults = append(faults, writeBill(binary, release[1], parts))
	}
	return errors.Join(faults...)
}

// modules returns the modules with packages in the program, on any system that it is released for, and Go itself.
func modules(root string) ([]part, error) {
	known := make(map[string]*part)
	for _, system := range []string{"linux", "darwin"} {
		cmd := exec.Command("go", "list", "-deps", "-json=Dir,Module", "./cmd/ringback")
		cmd.Dir, cmd.Env, cmd.Stderr = root, append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system), os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("list the packages of the program: %w", err)
		}
		for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
			var pkg struct {
				Dir    string
				Module *struct {
					Path, Version, Dir string
					Main               bool
				}
			}
			if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if pkg.Module == nil || pkg.Module.Main {
				continue
			}
			p := known[pkg.Module.Path]
			if p == nil {
				p = &part{path: pkg.Module.Path, version: pkg.Module.Version}
				known[p.path] = p
			}
			for dir := pkg.Dir; strings.HasPrefix(dir, pkg.Module.Dir); dir = filepath.Dir(dir) {
				if !slices.Contains(p.dirs, dir) {
					p.dirs = append(p.dirs, dir)
				}
			}
		}
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find Go: %w", err)
	}
	all := []part{{
		path: goPart, version: "of the toolchain",
		dirs: []string{strings.TrimSpace(string(goroot))},
	}}
	for _, p := range known {
		all = append(all, *p)
	}
	slices.SortFunc(all[1:], func(a, b part) int { return strings.Compare(a.path, b.path) })
	return all, nil
}

// htmx returns the script that the console embeds.
func htmx(root string) (part, error) {
	assets := filepath.Join(root, "console", "assets")
	text, err := os.ReadFile(filepath.Join(assets, "packages.txt"))
	if err != nil {
		return part{}, err
	}
	m := regexp.MustCompile(`(?m)^package (` + htmxPart + `)@(\S+) `).FindSubmatch(text)
	if m == nil {
		return part{}, errors.New("console/assets/packages.txt does not name htmx")
	}
	return part{path: string(m[1]), version: string(m[2]), dirs: []string{filepath.Join(assets, "vendor")}}, nil
}

// read finds the licences and the notice of a part.
func (p *part) read() error {
	p.texts = make(map[string][]byte)
	root := slices.MinFunc(p.dirs, func(a, b string) int { return len(a) - len(b) })
	var faults []error
	for _, dir := range p.dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := strings.TrimPrefix(e.Name(), "htmx-")
			isLicence, isNotice := licenceFile.MatchString(name), noticeFile.MatchString(name)
			if e.IsDir() || strings.HasSuffix(name, ".go") || !isLicence && !isNotice {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			within, err := filepath.Rel(root, dir)
			if err != nil {
				return err
			}
			p.texts[filepath.Join(within, e.Name())] = text
			if isNotice {
				p.notice = strings.TrimSpace(string(text))
				continue
			}
			faults = append(faults, p.add(e.Name(), text))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if len(p.licences) == 0 {
		return fmt.Errorf("%s %s has no licence file", p.path, p.version)
	}
	slices.Sort(p.licences)
	p.licences = slices.Compact(p.licences)
	return nil
}

// add adds the licences of a file, if they may be used.
func (p *part) add(name string, text []byte) error {
	sum := fmt.Sprintf("%.6x", sha256.Sum256(text))
	if licences, ok := reviewed[sum]; ok {
		p.licences = append(p.licences, licences...)
		return nil
	}
	found := licensecheck.Scan(text)
	if found.Percent < minCoverage {
		return fmt.Errorf("%s %s: %.0f %% of %s is a known licence: read it, and add %q to reviewed", p.path, p.version,
			found.Percent, name, sum)
	}
	for _, m := range found.Match {
		if !slices.Contains(permissive, m.ID) && (m.ID != "MPL-2.0" || !slices.Contains(weakCopyleft, p.path)) {
			return fmt.Errorf("%s %s: %s in %s is not permissive: use another module", p.path, p.version, m.ID, name)
		}
		p.licences = append(p.licences, m.ID)
	}
	return nil
}

func write(out io.Writer, parts []part) error {
	var b strings.Builder
	b.WriteString(`# Licences

<!-- Written by make licences. -->

Ringback is licensed under the [Apache License 2.0](../LICENSE). Its program contains the following, under their own ` +
		`licences. All are
permissive, but for the MPL-2.0 of some modules: it asks for the source of changed files, and none is changed.

| part | version | licence |
|---|---|---|
`)
	for _, p := range parts {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p.path, p.version, strings.Join(p.licences, ", "))
	}
	b.WriteString("\nThe texts are in the modules, at `https://pkg.go.dev/MODULE@VERSION?tab=licenses`, and that of " +
		"htmx in `console/assets/vendor`.\n")
	b.WriteString("\n## Notices\n\nWhat the authors of modules ask to be passed on:\n")
	for _, p := range parts {
		if p.notice != "" {
			fmt.Fprintf(&b, "\n%s:\n\n", p.path)
			for line := range strings.Lines(p.notice) {
				b.WriteString(strings.TrimRight("    "+strings.TrimRight(line, "\r\n"), " ") + "\n")
			}
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
