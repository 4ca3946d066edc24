package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// repository has what the pages name and the site does not have: folders and source files.
const repository = "https://github.com/ringback/ringback/tree/main/"

// start is the first page, and contents the one whose tables are the navigation.
const start, contents = "README.md", "docs/README.md"

//go:embed page.html site.css search.js
var assets embed.FS

var layout = template.Must(template.ParseFS(assets, "page.html"))

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()), goldmark.WithRendererOptions(html.WithUnsafe()))

// A page is a document and its form in HTML.
type page struct {
	Source, Title string
	Body          template.HTML
	Root          string // the way to the first page's folder
	Groups        []group
	sections      []section
}

// A group is a part of the navigation.
type group struct {
	Title string
	Links []link
}

type link struct {
	Title, URL string // URL from the first page's folder on
	Current    bool
}

// A section is what the search finds: a heading and the text below it.
type section struct {
	Page    string `json:"p"`
	Heading string `json:"h"`
	URL     string `json:"u"`
	Text    string `json:"x"`
}

type site struct {
	root  fs.FS
	dest  string
	pages map[string]*page // by source; nil: not rendered yet
	queue []string
}

// Render writes the site, and returns the number of its pages. They are the first page, the documentation, and the
// documents that these link to.
func Render(root fs.FS, dest string) (int, error) {
	s := &site{root: root, dest: dest, pages: make(map[string]*page)}
	s.add(start)
	docs, err := fs.Glob(root, "docs/*.md")
	if err != nil {
		return 0, err
	}
	for _, name := range docs {
		s.add(name)
	}
	var groups []group
	var sections []section
	for i := 0; i < len(s.queue); i++ {
		name := s.queue[i]
		doc, source, err := s.parse(name)
		if err != nil {
			return 0, err
		}
		if name == contents {
			groups = navigation(doc, source)
		}
		p := &page{Source: name, Root: strings.Repeat("../", strings.Count(name, "/"))}
		p.sections = sectionsOf(doc, source, target(name))
		p.Title = p.sections[0].Heading
		for j := range p.sections {
			p.sections[j].Page = p.Title
		}
		var b bytes.Buffer
		if err := markdown.Renderer().Render(&b, source, doc); err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		p.Body = template.HTML(b.String()) //nolint:gosec // the documents are the project's own
		s.pages[name] = p
		sections = append(sections, p.sections...)
	}
	for _, p := range s.pages {
		p.Groups = at(groups, target(p.Source))
		var b bytes.Buffer
		if err := layout.Execute(&b, p); err != nil {
			return 0, err
		}
		if err := s.write(target(p.Source), b.Bytes()); err != nil {
			return 0, err
		}
	}
	index, err := json.Marshal(sections)
	if err != nil {
		return 0, err
	}
	if err := s.write("search-index.js", append([]byte("window.sections = "), index...)); err != nil {
		return 0, err
	}
	for _, name := range []string{"site.css", "search.js"} {
		asset, err := assets.ReadFile(name)
		if err == nil {
			err = s.write(name, asset)
		}
		if err != nil {
			return 0, err
		}
	}
	return len(s.pages), nil
}

// add queues a document once.
func (s *site) add(name string) {
	if _, known := s.pages[name]; !known {
		s.pages[name] = nil
		s.queue = append(s.queue, name)
	}
}

func (s *site) write(name string, content []byte) error {
	file := filepath.Join(s.dest, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// target is the path of a document's page.
func target(source string) string {
	dir, name := path.Split(source)
	if name == "README.md" {
		name = "index.md"
	}
	return dir + strings.TrimSuffix(name, ".md") + ".html"
}

// parse reads a document, and makes its links lead to pages.
func (s *site) parse(name string) (ast.Node, []byte, error) {
	source, err := fs.ReadFile(s.root, name)
	if err != nil {
		return nil, nil, err
	}
	doc := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(ids{}))))
	err = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var err error
		switch n := n.(type) {
		case *ast.Link:
			var to string
			to, err = s.follow(name, string(n.Destination))
			n.Destination = []byte(to)
		case *ast.Image:
			_, err = s.follow(name, string(n.Destination))
		case *ast.HTMLBlock:
			err = s.files(name, n.Lines(), source)
		case *ast.RawHTML:
			err = s.files(name, n.Segments, source)
		}
		return ast.WalkContinue, err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return doc, source, nil
}

var fileOf = regexp.MustCompile(`(?:src|srcset)="([^"]+)"`)

// files copies the files that a piece of HTML names.
func (s *site) files(from string, lines *text.Segments, source []byte) error {
	for _, m := range fileOf.FindAllSubmatch(lines.Value(source), -1) {
		if _, err := s.follow(from, string(m[1])); err != nil {
			return err
		}
	}
	return nil
}

// follow returns where a link of a document leads in the site. It queues documents and copies files.
func (s *site) follow(from, to string) (string, error) {
	file, fragment, _ := strings.Cut(to, "#")
	if file == "" || strings.Contains(file, ":") {
		return to, nil
	}
	if fragment != "" {
		fragment = "#" + fragment
	}
	name := path.Join(path.Dir(from), file)
	info, err := fs.Stat(s.root, name)
	switch {
	case err != nil:
		return "", err
	case strings.HasSuffix(name, ".md"):
		s.add(name)
		return path.Join(path.Dir(file), path.Base(target(name))) + fragment, nil
	case info.IsDir(), strings.HasSuffix(name, ".go"):
		return repository + name + fragment, nil
	}
	content, err := fs.ReadFile(s.root, name)
	if err != nil {
		return "", err
	}
	return to, s.write(name, content)
}

// ids names headings as the readers of the sources do.
type ids struct{}

var notInID = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

func (ids) Generate(value []byte, _ ast.NodeKind) []byte {
	name := notInID.ReplaceAllString(strings.ToLower(string(value)), "")
	return []byte(strings.ReplaceAll(name, " ", "-"))
}

func (ids) Put([]byte) {}

// plain returns the text of a node.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch {
		case !entering && n.Type() == ast.TypeBlock:
			b.WriteByte(' ')
		case !entering:
		case n.Kind() == ast.KindText:
			t, _ := n.(*ast.Text)
			b.Write(t.Value(source))
			if t.SoftLineBreak() {
				b.WriteByte(' ')
			}
		case n.Kind() == ast.KindFencedCodeBlock, n.Kind() == ast.KindCodeBlock:
			b.Write(n.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// sectionsOf returns the sections of a document, the first of which has its title.
func sectionsOf(doc ast.Node, source []byte, url string) []section {
	all := []section{{URL: url}}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		last := &all[len(all)-1]
		heading, ok := n.(*ast.Heading)
		switch {
		case !ok:
			last.Text = strings.TrimSpace(last.Text + " " + plain(n, source))
		case last.Heading == "" && len(all) == 1:
			last.Heading = plain(n, source)
		default:
			id, _ := heading.AttributeString("id")
			all = append(all, section{Heading: plain(n, source), URL: fmt.Sprintf("%s#%s", url, id)})
		}
	}
	return all
}

// navigation reads the groups from the headings and tables of the contents.
func navigation(doc ast.Node, source []byte) []group {
	var groups []group
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Heading:
			if entering && n.Level == 2 {
				groups = append(groups, group{Title: plain(n, source)})
			}
		case *ast.Link:
			if entering && len(groups) > 0 && n.Parent().Kind().String() == "TableCell" {
				g := &groups[len(groups)-1]
				g.Links = append(g.Links, link{
					Title: plain(n, source), URL: path.Join(path.Dir(contents), string(n.Destination)),
				})
			}
		}
		return ast.WalkContinue, nil
	})
	return groups
}

// at returns the navigation of a page.
func at(groups []group, url string) []group {
	all := make([]group, len(groups))
	for i, g := range groups {
		all[i].Title = g.Title
		for _, l := range g.Links {
			l.Current = l.URL == url
			all[i].Links = append(all[i].Links, l)
		}
	}
	return all
}
