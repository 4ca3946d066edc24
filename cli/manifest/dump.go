package manifest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/ringback/ringback/internal/utf8text"
)

// Dump returns the topics, lanes and schedules of a server as a file, with those of one mark only unless it is empty. A
// pause is left out, and so are secrets: they are placeholders, with which the server keeps what it has. Left are the
// schedules that the server cannot read, which the file does not have. The mark is in the file if all have it.
func Dump(ctx context.Context, call Server, managedBy string) (text []byte, left []string, err error) {
	have, err := fetch(ctx, call, func(string) bool { return true }, nil)
	if err != nil {
		return nil, nil, err
	}
	maps.DeleteFunc(have, func(_ ID, s stored) bool { return managedBy != "" && s.managedBy != managedBy })
	var documents []map[string]any
	for _, s := range have {
		documents = append(documents, s.doc)
	}
	if err := checkBodies(ctx, call, documents); err != nil {
		return nil, nil, err
	}
	tree := map[Kind]map[string]any{Topic: {}, Lane: {}, Schedule: {}}
	marks := make(map[string]bool)
	for id, s := range have {
		if s.doc["state"] == "unreadable" {
			left = append(left, id.String())
			continue
		}
		marks[s.managedBy] = true
		doc := settings(id.Kind, s.doc)
		delete(doc, "managed_by")
		delete(doc, "paused")
		of := tree[id.Kind]
		if id.Kind == Lane {
			if of[id.Topic] == nil {
				of[id.Topic] = make(map[string]any)
			}
			of, _ = of[id.Topic].(map[string]any)
		}
		of[id.Name] = doc
	}
	var b bytes.Buffer
	if len(marks) == 1 { // otherwise, what has none or another one would get it
		for mark := range marks {
			managedBy = mark
		}
	}
	if managedBy == "" {
		b.WriteString("# managed_by: NAME   # apply needs it, and marks all of the file with it; diff does not\n")
	}
	root := &yaml.Node{Kind: yaml.MappingNode}
	if managedBy != "" {
		root.Content = append(root.Content, toNode("managed_by"), toNode(managedBy))
	}
	for _, kind := range kinds {
		if len(tree[kind]) > 0 {
			root.Content = append(root.Content, toNode(string(kind)+"s"), toNode(tree[kind]))
		}
	}
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, nil, fmt.Errorf("write YAML: %w", err)
	}
	slices.Sort(left)
	// they are in double quotes
	return []byte(utf8text.ReplaceInvisible(b.String(), utf8text.EscapeInvisible)), left, nil
}
