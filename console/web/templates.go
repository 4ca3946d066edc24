package web

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"
)

//go:embed templates
var ownFiles embed.FS

// livePrefix begins the names of the templates of live blocks.
const livePrefix = "live-"

// Template is the template of a page.
type Template struct {
	tree *template.Template
	live []string // names of the live blocks, without livePrefix
}

// Templates parses the templates of packages: by view. It returns an error for two views of one name, and for a page
// without content.
//
// Templates are those of html/template, but cannot call methods of their data. That package looks methods up by name,
// and with it the linker has to keep all exported methods of the program: the binary would be 9 MB larger.
func Templates(all ...Pages) (map[string]*Template, error) {
	views := make(map[string]*Template)
	own, err := fs.Sub(ownFiles, "templates")
	if err != nil {
		return nil, fmt.Errorf("parse the console's templates: %w", err)
	}
	for _, pages := range all {
		files, err := fs.Sub(pages.Files, "templates")
		if err != nil {
			return nil, fmt.Errorf("parse the templates of %s: %w", pages.Name, err)
		}
		names, err := fs.Glob(files, "[^_]*.html")
		if err != nil {
			return nil, fmt.Errorf("parse the templates of %s: %w", pages.Name, err)
		}
		for _, name := range names {
			view := strings.TrimSuffix(name, path.Ext(name))
			if views[view] != nil {
				return nil, fmt.Errorf("parse the templates of %s: there are two views %q", pages.Name, view)
			}
			if views[view], err = parseView(own, files, name, pages.Funcs); err != nil {
				return nil, fmt.Errorf("parse the templates of %s: %w", pages.Name, err)
			}
		}
	}
	return views, nil
}

// parseView parses a page with the templates that all share and those of its package.
func parseView(own, files fs.FS, name string, funcs template.FuncMap) (*Template, error) {
	t := new(Template)
	t.tree = template.New(name).Option("missingkey=error").Funcs(Funcs()).Funcs(funcs).
		Funcs(template.FuncMap{"live": t.renderLive})
	if _, err := t.tree.ParseFS(own, "*.html"); err != nil {
		return nil, err
	}
	if shared, _ := fs.Glob(files, "_*.html"); len(shared) > 0 { // the pattern is right
		if _, err := t.tree.ParseFS(files, shared...); err != nil {
			return nil, err
		}
	}
	if _, err := t.tree.ParseFS(files, name); err != nil {
		return nil, err
	}
	if t.tree.Lookup("content") == nil {
		return nil, fmt.Errorf("%s has no template \"content\"", name)
	}
	for _, tree := range t.tree.Templates() {
		if block, ok := strings.CutPrefix(tree.Name(), livePrefix); ok {
			t.live = append(t.live, block)
		}
	}
	slices.Sort(t.live)
	return t, nil
}

// renderLive renders a live block in its element.
func (t *Template) renderLive(name string, data any) (template.HTML, error) {
	var b bytes.Buffer
	b.WriteString(`<div id="live-` + name + `">`)
	if err := t.tree.ExecuteTemplate(&b, livePrefix+name, data); err != nil {
		return "", err
	}
	b.WriteString(`</div>`)
	return template.HTML(b.String()), nil // the template has escaped it
}

// HasLive reports whether the page has live blocks.
func (t *Template) HasLive() bool { return len(t.live) > 0 }

// Render renders a template of the page. Texts show characters as escapes that would not be seen, or change how others
// look.
func (t *Template) Render(name string, view *View) ([]byte, error) {
	var b bytes.Buffer
	if err := t.tree.ExecuteTemplate(&b, name, view); err != nil {
		return nil, err
	}
	return showInvisible(b.Bytes()), nil
}

// A Block is a live block as it was rendered.
type Block struct {
	ID   string // of its element
	HTML []byte
}

// Blocks renders the live blocks.
func (t *Template) Blocks(view *View) ([]Block, error) {
	blocks := make([]Block, len(t.live))
	for i, name := range t.live {
		html, err := t.Render(livePrefix+name, view)
		if err != nil {
			return nil, err
		}
		blocks[i] = Block{ID: livePrefix + name, HTML: html}
	}
	return blocks, nil
}
