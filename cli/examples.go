package cli

import "github.com/alecthomas/kong"

// Examples puts the example of each command into its help.
func Examples(k *kong.Kong) error {
	return kong.Visit(k.Model, func(v kong.Visitable, next kong.Next) error {
		if node, ok := v.(*kong.Node); ok && node.Tag != nil && node.Tag.Has("example") {
			node.Detail = "Example:\n\n    " + node.Tag.Get("example")
		}
		return next(nil)
	})
}
