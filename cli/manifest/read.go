package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ringback/ringback/internal/utf8text"
	"github.com/ringback/ringback/job"
)

// A Set is what files say.
type Set struct {
	// ManagedBy is the mark of the resources.
	ManagedBy string
	resources []*resource
}

// A resource is a topic, a lane or a schedule of a file.
type resource struct {
	id    ID
	doc   map[string]any
	file  string
	line  int
	lines map[string]int // by JSON pointer
	reset bool           // it is not in the files, and gets the defaults
}

// place returns the file and the line of a field of a problem, or of the closest one around it.
func (r *resource) place(pointer string) string {
	for {
		if line := r.lines[pointer]; line > 0 {
			return fmt.Sprintf("%s:%d", r.file, line)
		}
		i := strings.LastIndexByte(pointer, '/')
		if i <= 0 {
			return fmt.Sprintf("%s:%d", r.file, r.line)
		}
		pointer = pointer[:i]
	}
}

// Read reads files of YAML or JSON, and the files of folders. The function read returns the content of a file, and that
// of the standard input for -. The error is an *Error with all faults, or that of a file that cannot be read.
func Read(paths []string, read func(name string) ([]byte, error)) (*Set, error) {
	return readFiles(paths, read, true)
}

func readFiles(paths []string, read func(name string) ([]byte, error), mustMark bool) (*Set, error) {
	names, err := expand(paths)
	if err != nil {
		return nil, err
	}
	r := reader{places: make(map[ID]string), set: new(Set)}
	for _, name := range names {
		text, err := read(name)
		if err != nil {
			return nil, err
		}
		r.read(name, text)
	}
	if mustMark && r.set.ManagedBy == "" && len(r.faults) == 0 {
		r.faults = append(r.faults,
			names[0]+":1: managed_by is required: a name of these files such as shop, which marks what they manage")
	}
	if len(r.faults) > 0 {
		return nil, &Error{Invalid, r.faults}
	}
	slices.SortFunc(r.set.resources, func(a, b *resource) int { return a.id.compare(b.id) })
	return r.set, nil
}

// expand replaces folders by their files.
func expand(paths []string) ([]string, error) {
	var names []string
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case path == "-" && slices.Contains(names, path):
			return nil, errors.New("the standard input (-) is given twice: it can be read once")
		case path == "-" || err == nil && !info.IsDir():
			names = append(names, path)
			continue
		case err != nil:
			return nil, err // it names the file
		}
		var found []string
		for _, ending := range []string{"*.yaml", "*.yml", "*.json"} {
			files, _ := filepath.Glob(filepath.Join(path, ending)) // the pattern is valid
			found = append(found, files...)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s has no file with the ending .yaml, .yml or .json", path)
		}
		slices.Sort(found)
		names = append(names, found...)
	}
	return names, nil
}

// A reader collects what files say, and their faults.
type reader struct {
	set    *Set
	places map[ID]string
	marked string // where managed_by is
	faults []string
}

// read reads the documents of a file.
func (r *reader) read(name string, text []byte) {
	text, err := utf8text.Trim(text)
	if err != nil {
		r.faults = append(r.faults, name+": "+err.Error())
		return
	}
	if json.Valid(text) {
		text = jsonEscape.ReplaceAllFunc(text, unescape)
	}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document yaml.Node
		err := d.Decode(&document)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.faults = append(r.faults, name+": "+strings.TrimPrefix(err.Error(), "yaml: "))
			return
		}
		if len(document.Content) > 0 {
			c := &converter{file: name}
			r.document(c, document.Content[0])
			r.faults = append(r.faults, c.faults...)
		}
	}
}

// jsonEscape matches the escapes of JSON.
var jsonEscape = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\.`)

// unescape returns the character of an escape that YAML does not have: a slash, or a pair of surrogates.
func unescape(escape []byte) []byte {
	if len(escape) == 2 && escape[1] != '/' {
		return escape
	}
	var text string
	if json.Unmarshal(slices.Concat([]byte{'"'}, escape, []byte{'"'}), &text) != nil {
		return escape
	}
	return []byte(text)
}

// document reads a document.
func (r *reader) document(c *converter, root *yaml.Node) {
	for _, e := range c.entries(root, "the file", 0) {
		switch e.key.Value {
		case "managed_by":
			r.mark(c, e.value)
		case "topics":
			r.resources(c, e.value, Topic, "")
		case "schedules":
			r.resources(c, e.value, Schedule, "")
		case "lanes":
			for _, topic := range c.entries(e.value, "lanes", 0) {
				r.resources(c, topic.value, Lane, topic.key.Value)
			}
		default:
			c.fault(e.key.Line, "%s is not a key: there are managed_by, topics, lanes and schedules", e.key.Value)
		}
	}
}

// mark reads managed_by, which all files must agree on.
func (r *reader) mark(c *converter, node *yaml.Node) {
	here := fmt.Sprintf("%s:%d", c.file, node.Line)
	switch node = resolve(node); {
	case node.Kind != yaml.ScalarNode || node.Value == "" || node.Tag == "!!null":
		c.fault(node.Line, "managed_by must be a text, such as shop")
	case r.set.ManagedBy != "" && r.set.ManagedBy != node.Value:
		c.fault(node.Line, "managed_by is %s, but %s in %s: files that are applied together have one", node.Value,
			r.set.ManagedBy, r.marked)
	case len(job.ValidateMark(node.Value)) > 0:
		c.fault(node.Line, "managed_by %s", job.ValidateMark(node.Value)[0].Detail)
	default:
		r.set.ManagedBy, r.marked = node.Value, here
	}
}

// resources reads the resources of a kind.
func (r *reader) resources(c *converter, node *yaml.Node, kind Kind, topic string) {
	for _, e := range c.entries(node, string(kind)+"s", 0) {
		id := ID{kind, topic, e.key.Value}
		if c.full {
			return
		}
		res := &resource{id: id, file: c.file, line: e.key.Line, lines: make(map[string]int)}
		c.lines = res.lines
		if value := resolve(e.value); value.Kind != yaml.ScalarNode || value.Tag != "!!null" {
			object, ok := c.value(e.value, "", 0).(map[string]any)
			if !ok && !c.full {
				c.fault(e.value.Line, "%s must be a mapping of its members", id)
			}
			res.doc = object
		}
		for _, name := range slices.Sorted(maps.Keys(res.doc)) {
			if why := notInFiles(kind, name); why != "" {
				c.fault(res.lines["/"+name], "%s: %s %s", id, name, why)
			}
		}
		// what a token without bodies gets
		if template, ok := res.doc["job"].(map[string]any); ok && template["body_text"] == redacted {
			c.fault(res.lines["/job/body_text"], "%s: job.body_text is a placeholder: write the body itself", id)
		}
		if before := r.places[id]; before != "" {
			c.fault(e.key.Line, "%s is set twice, also in %s", id, before)
			continue
		}
		r.places[id] = res.place("")
		r.set.resources = append(r.set.resources, res)
	}
}

// notInFiles says why a member cannot be set by a file; empty: it can.
func notInFiles(kind Kind, name string) string {
	switch {
	case name == "managed_by":
		return "belongs at the top of the file, and holds for all that it has"
	case name == "paused" && kind != Schedule:
		return fmt.Sprintf("is state, which files do not have: use ringback %s pause", kind)
	case name == "secrets":
		return fmt.Sprintf("do not belong in files: use ringback %s secret add", kind)
	case slices.Contains(readOnly[kind], name):
		return "is read-only: remove the line"
	}
	return ""
}
