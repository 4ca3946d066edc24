package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/cli"
)

// Every flag has a variable: --max-body is RINGBACK_MAX_BODY. The token and the secret key have only a variable, since
// command lines are visible to all users of a machine.
const (
	variablePrefix    = "RINGBACK_"
	tokenVariable     = variablePrefix + "TOKEN"
	secretKeyVariable = variablePrefix + "SECRET_KEY"
)

// environment maps the names of non-empty RINGBACK_… variables to their values.
type environment map[string]string

func readEnvironment(environ []string) environment {
	env := make(environment)
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, variablePrefix) && value != "" {
			env[name] = value
		}
	}
	return env
}

// variable returns the name of a flag's variable. A flag whose meaning depends on the command has a "variable" tag; "-":
// none.
func variable(v *kong.Value) string {
	switch own := v.Tag.Get("variable"); {
	case own == "-", v.Tag.EnvPrefix == "-", v.Name == "help":
		return ""
	case own != "":
		return own
	}
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(v.Name, "-", "_"))
}

// unknown returns an error for variables that no command has, so that a misspelt setting is not ignored.
func (e environment) unknown(model *kong.Application) error {
	known := map[string]bool{tokenVariable: true, secretKeyVariable: true}
	for _, name := range cli.Variables {
		known[name] = true
	}
	for _, command := range model.Children {
		for _, flag := range command.Flags {
			known[variable(flag.Value)] = true
		}
	}
	var names []string
	for name := range e {
		if !known[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	if len(names) == 1 {
		return fmt.Errorf("%s is not a known setting", names[0])
	}
	return errors.New(strings.Join(names, ", ") + " are not known settings")
}

// isClientCommand reports whether a command is one of package cli, whose flags have no variables.
func isClientCommand(command *kong.Node) bool { return command.Tag.EnvPrefix == "-" }

// helpWithVariable adds the default and the variable to a flag's help.
func helpWithVariable(v *kong.Value) string {
	if v.Flag == nil || variable(v) == "" {
		return v.Help
	}
	preset := ""
	if v.HasDefault && v.Default != "0" {
		preset = "default " + v.Default + ", "
	}
	return strings.TrimSuffix(v.Help, ".") + " (" + preset + "$" + variable(v) + ")."
}
