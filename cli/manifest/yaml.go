package manifest

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ringback/ringback/internal/utf8text"
	"github.com/ringback/ringback/job"
)

const (
	// maxNodes bounds the values of a file, also those that its aliases repeat.
	maxNodes = 1_000_000
	maxDepth = 100
)

// A converter turns the nodes of a file into JSON values, and keeps the lines of their JSON pointers.
type converter struct {
	file   string
	nodes  int
	full   bool // there were too many
	faults []string
	lines  map[string]int // of the resource that is converted
}

// fault adds a fault of a line.
func (c *converter) fault(line int, format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf("%s:%d: ", c.file, line)+fmt.Sprintf(format, args...))
}

// take counts values, and reports whether a file may have them. It may not, and this is a fault, if there are too many
// or too many levels.
func (c *converter) take(node *yaml.Node, n, depth int) bool {
	if c.nodes += n; !c.full && (c.nodes > maxNodes || depth > maxDepth) {
		c.full = true
		c.fault(node.Line, "has more than %d values, or %d levels", maxNodes, maxDepth)
	}
	return !c.full
}

// An entry is a member of a mapping.
type entry struct {
	key   *yaml.Node
	value *yaml.Node
}

// entries returns the members of a mapping, with those that << merges after its own. Nil: it is none.
func (c *converter) entries(node *yaml.Node, what string, depth int) []entry {
	node = resolve(node)
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return nil
	}
	if c.full {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		c.fault(node.Line, "%s must be a mapping, NAME: VALUE", what)
		return nil
	}
	var own, merged []entry
	names := make(map[string]int)
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch before := names[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			c.fault(key.Line, "a name must be a text")
		case key.Tag == "!!merge":
			sources := []*yaml.Node{value}
			if value.Kind == yaml.SequenceNode {
				sources = value.Content
			}
			for _, source := range sources {
				if !c.take(source, 1, depth+1) {
					return nil
				}
				more := c.entries(source, what, depth+1)
				if !c.take(source, len(more), depth) {
					return nil
				}
				merged = append(merged, more...)
			}
		case before > 0:
			c.fault(key.Line, "%s is set twice, also in line %d", key.Value, before)
		default:
			names[key.Value] = key.Line
			own = append(own, entry{key, value})
		}
	}
	for _, e := range merged {
		if names[e.key.Value] == 0 {
			names[e.key.Value] = e.key.Line
			own = append(own, e)
		}
	}
	return own
}

func resolve(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

// value returns the JSON value of a node.
func (c *converter) value(node *yaml.Node, at string, depth int) any {
	if at != "" {
		c.lines[at] = node.Line
	}
	node = resolve(node)
	if !c.take(node, 1, depth) {
		return nil
	}
	switch node.Kind {
	case yaml.MappingNode:
		object := make(map[string]any)
		for _, e := range c.entries(node, "it", depth) {
			pointer := job.JSONPointer(at, e.key.Value)
			object[e.key.Value] = c.value(e.value, pointer, depth+1)
			c.lines[pointer] = e.key.Line
		}
		return object
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for i, item := range node.Content {
			list = append(list, c.value(item, at+"/"+strconv.Itoa(i), depth+1))
		}
		return list
	default:
		return c.scalar(node)
	}
}

// scalar returns the JSON value of a text, a number, a boolean or null. A time is a text, as it is in JSON.
func (c *converter) scalar(node *yaml.Node) any {
	switch node.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(node.Value, "true")
	case "!!int", "!!float":
		if number := json.Number(node.Value); json.Valid([]byte(node.Value)) {
			return number
		}
		var n int64
		if node.Tag == "!!int" && node.Decode(&n) == nil {
			return json.Number(strconv.FormatInt(n, 10))
		}
		var f float64
		if node.Decode(&f) != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			c.fault(node.Line, "%s is not a number in JSON", node.Value)
			return nil
		}
		return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
	case "!!str", "!!timestamp":
		return node.Value
	default:
		c.fault(node.Line, "the tag %s is not supported", node.Tag)
		return nil
	}
}

// toNode returns the node of a JSON value, with the members of objects in order of name.
func toNode(v any) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		node := &yaml.Node{Kind: yaml.MappingNode}
		for _, name := range sortedKeys(v) {
			node.Content = append(node.Content, toNode(name), toNode(v[name]))
		}
		return node
	case []any:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		if !slices.ContainsFunc(v, func(item any) bool { _, isObject := item.(map[string]any); return isObject }) {
			node.Style = yaml.FlowStyle
		}
		for _, item := range v {
			node.Content = append(node.Content, toNode(item))
		}
		return node
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(v.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: v.String()}
	case string:
		node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
		if utf8text.HasInvisible(v) || strings.HasPrefix(v, "\t") { // which no block may begin with
			node.Style = yaml.DoubleQuotedStyle // the only one with escapes
		}
		return node
	default: // a boolean or null
		node := new(yaml.Node)
		_ = node.Encode(v) // it has a form in YAML
		return node
	}
}
