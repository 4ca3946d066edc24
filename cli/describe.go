package cli

import (
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// text is what a command, a flag or an argument says of itself. It is the comment of its field: make generate copies it
// to texts.go.
type text struct {
	help    string
	example string // a command line
	asks    string // before what cannot be undone
	done    string // to people, after it
	running string // in place of done, while the job runs
}

// Describe gives the commands, flags and arguments of a grammar their help.
func Describe(k *kong.Kong) error {
	found := textsOf(k.Model.Target)
	help := func(target reflect.Value) string {
		return strings.ReplaceAll(found[locate(target)].help, "$", "$$") // variables are replaced after this
	}
	return kong.Visit(k.Model, func(v kong.Visitable, next kong.Next) error {
		switch v := v.(type) {
		case *kong.Node:
			v.Help = help(v.Target)
			if example := found[locate(v.Target)].example; example != "" {
				v.Detail = "Example:\n\n    " + example
			}
		case *kong.Value:
			if v.Help == "" { // that of --help is the parser's
				v.Help = help(v.Target)
			}
		}
		return next(nil)
	})
}

// location is where the value of a field is. A struct begins where its first field does, so the type belongs to it.
type location struct {
	at uintptr
	of reflect.Type
}

func locate(v reflect.Value) location { return location{v.UnsafeAddr(), v.Type()} }

// textsOf returns the texts of the fields of a grammar.
func textsOf(grammar reflect.Value) map[location]text {
	found := make(map[location]text)
	var visit func(reflect.Value)
	visit = func(v reflect.Value) {
		for f, field := range v.Fields() {
			found[locate(field)] = texts[v.Type().String()+"."+f.Name]
			if field.Kind() == reflect.Struct {
				visit(field)
			}
		}
	}
	visit(grammar)
	return found
}

// textOf returns the texts of a command.
func textOf(command *kong.Node) text {
	root := command
	for root.Parent != nil {
		root = root.Parent
	}
	return textsOf(root.Target)[locate(command.Target)]
}
