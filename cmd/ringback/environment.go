package main

import (
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/cli"
	"github.com/ringback/ringback/internal/typo"
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

// variable returns the name of a flag's variable. A flag whose meaning depends on the command has a "variable" tag;
// "-": none.
func variable(v *kong.Value) string {
	switch own := v.Tag.Get("variable"); {
	case own == "-", v.Tag.EnvPrefix == "-", v.Name == "help":
		return ""
	case own != "":
		return own
	}
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(v.Name, "-", "_"))
}

// serviceLink matches the variables that Kubernetes and Docker set in a container beside a service of such a name.
var serviceLink = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// unknown returns the variables that no command has, without those of links to services, and what each was probably
// meant to be.
func (e environment) unknown(model *kong.Application) (names []string, hints []string) {
	known := map[string]bool{tokenVariable: true, secretKeyVariable: true}
	for _, name := range cli.Variables {
		known[name] = true
	}
	for _, command := range model.Children {
		for _, flag := range command.Flags {
			known[variable(flag.Value)] = true
		}
	}
	for name, value := range e {
		isLink := serviceLink.MatchString(name) || strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://")
		if !known[name] && !isLink {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		closest := typo.Closest(strings.TrimPrefix(name, variablePrefix), func(yield func(string) bool) {
			for k := range known {
				if !yield(strings.TrimPrefix(k, variablePrefix)) {
					return
				}
			}
		})
		if closest != "" {
			hints = append(hints, name+": did you mean "+variablePrefix+closest+"?")
		}
	}
	return names, hints
}

// warnOfUnknown logs variables that no command has, so that a misspelt setting is noticed, if the command reads the
// server's settings. Other commands run where variables of this prefix may belong to another program.
func (s *settings) warnOfUnknown(command *kong.Context, stderr io.Writer) {
	format, readsSettings := "", false
	for _, flag := range command.Flags() {
		switch flag.Name {
		case configFlagName:
			readsSettings = true
		case "log":
			format, _ = command.FlagValue(flag).(string)
		}
	}
	if names, hints := s.env.unknown(command.Model); readsSettings && len(names) > 0 {
		log := newLogger(stderr, format)
		if len(hints) > 0 {
			log = log.With("hints", hints)
		}
		log.Warn("variables are no settings and have no effect: correct or remove them", "variables", names)
	}
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
