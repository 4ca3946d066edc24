package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Every flag can be given as a variable too: --max-body as RINGBACK_MAX_BODY. The token and the secret key have a variable
// only, since everyone on a machine can read the command lines of its processes.
const (
	variablePrefix    = "RINGBACK_"
	tokenVariable     = variablePrefix + "TOKEN"
	secretKeyVariable = variablePrefix + "SECRET_KEY"
)

// environment holds the RINGBACK_… variables that are not empty.
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

func (e environment) token() string     { return e[tokenVariable] }
func (e environment) secretKey() string { return e[secretKeyVariable] }

// variable names a flag's variable; a flag whose name means different things in different commands says its own.
func variable(v *kong.Value) string {
	if own := v.Tag.Get("variable"); own != "" {
		return own
	}
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(v.Name, "-", "_"))
}

// Validate is part of kong.Resolver.
func (e environment) Validate(*kong.Application) error { return nil }

// Resolve gives flags that are not on the command line the value of their variable.
func (e environment) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if value, ok := e[variable(flag.Value)]; ok {
		return value, nil
	}
	return nil, nil //nolint:nilnil // kong's way to say that there is no value
}

// unknown reports variables that no command has: a misspelt setting must not be passed over.
func (e environment) unknown(model *kong.Application) error {
	known := map[string]bool{tokenVariable: true, secretKeyVariable: true}
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
		return fmt.Errorf("%s is not a setting", names[0])
	}
	return errors.New(strings.Join(names, ", ") + " are not settings")
}

// helpWithVariable adds the default and the variable to a flag's help.
func helpWithVariable(v *kong.Value) string {
	if v.Flag == nil || v.Name == "help" {
		return v.Help
	}
	preset := ""
	if v.HasDefault && v.Default != "0" {
		preset = "default " + v.Default + ", "
	}
	return strings.TrimSuffix(v.Help, ".") + " (" + preset + "$" + variable(v) + ")."
}
