package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// manCommand is ringback __man: it prints the manual page, which packages install, in the language of man(7).
type manCommand struct{}

// RunCommand prints the page.
func (manCommand) RunCommand(k *kong.Context, p *process) error {
	_, err := io.WriteString(p.stdout, manual(k.Model))
	return err
}

// manual returns the manual page of the commands.
func manual(app *kong.Application) string {
	var b strings.Builder
	line := func(format string, texts ...any) {
		for i, text := range texts {
			texts[i] = roff(fmt.Sprint(text))
		}
		fmt.Fprintf(&b, format+"\n", texts...)
	}
	options := func(flags []*kong.Flag) {
		for _, f := range flags {
			line(".TP\n\\fB%s\\fR\n%s", f, helpWithVariable(f.Value))
		}
	}
	leaves := app.Leaves(true)
	line(".TH RINGBACK 1 \"\" \"ringback %s\" \"User Commands\"\n.nr HY 0", versionName())
	line(".SH NAME\nringback \\- send HTTP callbacks when they are due, and retry them until they arrive")
	line(".SH SYNOPSIS\n.B ringback\n.I command\n.RI [ arguments ]\n.RI [ flags ]")
	line(".SH DESCRIPTION\n%s", app.Help)
	line(".PP\nThe same program is server and client. %s lists the flags of a command.", "ringback COMMAND --help")
	line(".SH OPTIONS\nCommands that call a server have these:")
	isCommon := func(f *kong.Flag) bool { return f.Group != nil && f.Group.Key == "output" }
	var common []*kong.Flag
	for _, command := range leaves {
		for _, f := range command.Flags {
			sameName := func(known *kong.Flag) bool { return known.Name == f.Name }
			if isCommon(f) && !slices.ContainsFunc(common, sameName) {
				common = append(common, f)
			}
		}
	}
	options(common)
	section := ""
	for _, command := range leaves {
		if title := command.ClosestGroup().Title; title != section {
			section = title
			line(".SH %s", strings.ToUpper(strings.TrimSuffix(title, ":")))
		}
		line(".SS %s\n%s", command.Summary(), command.Help)
		options(slices.DeleteFunc(slices.Clone(command.Flags), isCommon))
		if _, example, found := strings.Cut(command.Detail, "\n\n    "); found {
			line(".PP\nExample:\n.PP\n.EX\n%s\n.EE", example)
		}
	}
	line(".SH ENVIRONMENT\nThe variables of flags stand beside them. Without a flag are %s, the root token of a\n"+
		"server, and %s, the keys that encrypt secrets in its store.", "RINGBACK_TOKEN", "RINGBACK_SECRET_KEY")
	line(".SH SEE ALSO\nThe documentation, in %s or at\n%s", "/usr/share/doc/ringback",
		"https://github.com/ringback/ringback")
	return b.String()
}

// roff escapes a text. A line that begins with it is no request.
func roff(text string) string {
	var b strings.Builder
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		b.WriteString(`\&`)
	}
	for _, r := range text {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r == '"':
			b.WriteString(`\(dq`)
		case r > '~':
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
