package main

import (
	"fmt"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"github.com/ringback/ringback/dispatcher/tracing/otlp"
	"github.com/ringback/ringback/internal/app"
)

// configCommand is ringback config.
type configCommand struct {
	serveFlags `embed:""`
}

// RunCommand prints the settings in force, as a configuration file, each with where it comes from. Passwords are left
// out.
func (c *configCommand) RunCommand(ctx *kong.Context, p *process) error {
	options, err := c.options(p, c.AllowPrivate, c.Roles)
	if err != nil {
		return err
	}
	exporter, err := traces()
	if err != nil {
		return err
	}
	flags, err := p.flagsInForce(ctx, options)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, name := range p.secretVariables() {
		fmt.Fprintf(out, "# %s is set\n", name)
	}
	fmt.Fprintf(out, "# traces: %s\n", describeTraces(exporter))
	for _, s := range flags {
		fmt.Fprintf(out, "%s: %s\t# %s\n", s.Name, s.Value, s.From)
	}
	return out.Flush() // it is stdout
}

// inForce returns the settings in force of a service, as ringback config prints them.
func (p *process) inForce(ctx *kong.Context, options app.Options, exporter *otlp.Config) ([]app.Setting, error) {
	all, err := p.flagsInForce(ctx, options)
	for _, name := range p.secretVariables() {
		all = append(all, app.Setting{
			Name:  strings.ToLower(strings.TrimPrefix(name, variablePrefix)),
			Value: "is set", From: "$" + name,
		})
	}
	traced := app.Setting{Name: "traces", Value: describeTraces(exporter), From: "default"}
	if exporter != nil {
		traced.From = "$" + exporter.From
	}
	return append(all, traced), err
}

// secretVariables returns the variables that have secrets.
func (p *process) secretVariables() (names []string) {
	for _, name := range []string{tokenVariable, secretKeyVariable} {
		if p.settings.env[name] != "" {
			names = append(names, name)
		}
	}
	return names
}

// flagsInForce returns the values of flags, in YAML, and where each comes from. Passwords are left out, as are flags
// without a value.
func (p *process) flagsInForce(ctx *kong.Context, options app.Options) (all []app.Setting, err error) {
	onCommandLine := make(map[*kong.Flag]bool)
	for _, path := range ctx.Path {
		onCommandLine[path.Flag] = !path.Resolved
	}
	for _, flag := range ctx.Flags() {
		if variable(flag.Value) == "" || flag.Name == configFlagName {
			continue
		}
		from, found := p.settings.from[flag.Name]
		switch {
		case onCommandLine[flag]:
			from = "--" + flag.Name
		case !found && flag.Target.IsZero():
			continue
		case !found:
			from = "default"
		}
		text, err := settingText(flag, options)
		if err != nil {
			return nil, err
		}
		all = append(all, app.Setting{Name: strings.ReplaceAll(flag.Name, "-", "_"), Value: text, From: from})
	}
	return all, nil
}

// settingText returns the value of a setting in YAML, on one line.
func settingText(flag *kong.Flag, options app.Options) (string, error) {
	var value any
	switch {
	case flag.Name == "store":
		value = options.StoreNames()
	case flag.Name == "proxy":
		value = options.Proxy.String()
	case flag.Target.Type() == reflect.TypeFor[[]string]():
		node := yaml.Node{Style: yaml.FlowStyle}
		if err := node.Encode(flag.Target.Interface()); err != nil {
			return "", err // texts are encoded without an error
		}
		node.Style = yaml.FlowStyle
		value = &node
	case flag.Target.Kind() == reflect.Bool:
		value = flag.Target.Bool()
	default:
		value = fmt.Sprint(flag.Target.Interface())
	}
	text, err := yaml.Marshal(value)
	return strings.TrimSpace(string(text)), err
}
