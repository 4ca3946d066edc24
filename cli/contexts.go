package cli

import (
	"fmt"
	"path/filepath"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/internal/utf8text"
)

// contextCommand is ringback context.
type contextCommand struct {
	// Add or replace a context. The first one becomes the current one.
	//
	//	ringback context add prod --server https://ringback.internal --token-file prod.token
	Add addContext `cmd:""`
	// Choose the current context; - is the one before.
	//
	//	ringback context use prod
	Use useContext `cmd:""`
	// List contexts.
	//
	//	ringback context list
	List listContexts `cmd:""`
	// Remove a context.
	//
	//	ringback context remove prod
	Remove removeContext `cmd:""`
	// Show which server commands call from here, and where that is set.
	//
	//	ringback context show
	Show showContext `cmd:""`
}

// contexts reads the contexts.
func contexts() (all serverContexts, err error) {
	dir, err := settingsDir()
	if err == nil {
		all, err = loadContexts(dir)
	}
	if err != nil {
		return serverContexts{}, &usageError{Err: err}
	}
	return all, nil
}

// changeContexts changes the contexts, and prints what was done.
func changeContexts(e *Environment, change func(all *serverContexts) (done string, err error)) error {
	all, err := contexts()
	if err != nil {
		return err
	}
	done, err := change(&all)
	if err == nil {
		err = all.Save()
	}
	if err == nil {
		_, err = fmt.Fprintln(e.Stdout, done)
	}
	return err
}

// addContext is ringback context add.
type addContext struct {
	// Name of the context.
	Name string `arg:""`
	// URL of the server.
	At string `name:"server" required:"" placeholder:"URL"`
	// File with the token. Only its path is stored.
	TokenFile string `placeholder:"FILE"`
	// Read the token from the standard input, and store it in a file that only you can read.
	TokenStdin bool
	// Namespace, for root tokens.
	Namespace string `placeholder:"NAME"`
}

// RunCommand adds the context.
func (c *addContext) RunCommand(e *Environment) error {
	replaced := "" // the folder with the token of the context that it replaces
	err := changeContexts(e, func(all *serverContexts) (string, error) {
		context := serverContext{Server: c.At, Namespace: c.Namespace}
		err := checkServerFlag(c.At)
		if err == nil {
			err = all.Add(c.Name, context) // checks the name, before it is that of a file
		}
		if err != nil {
			return "", &usageError{Err: err}
		}
		if context.TokenFile, err = c.tokenFile(e, all.dir); err != nil {
			return "", err
		}
		all.Contexts[c.Name] = context
		if context.TokenFile != filepath.Join(all.dir, c.Name+".token") {
			replaced = all.dir
		}
		if all.Current == c.Name {
			return all.called(), nil
		}
		return fmt.Sprintf("added %s; ringback context use %s makes it the current context", c.Name, c.Name), nil
	})
	if err == nil && replaced != "" { // once no stored context names it
		err = removeToken(replaced, c.Name)
	}
	return err
}

// tokenFile returns the file with the token, after it has stored one that is read from the standard input.
func (c *addContext) tokenFile(e *Environment, dir string) (string, error) {
	switch {
	case c.TokenStdin && c.TokenFile != "":
		return "", usagef("--token-stdin cannot be combined with --token-file")
	case c.TokenFile != "":
		return filepath.Abs(c.TokenFile)
	case !c.TokenStdin:
		return "", nil
	}
	text, err := e.readFile("-")
	if err != nil {
		return "", err
	}
	if text, err = utf8text.Trim(text); err != nil {
		return "", usagef("the token %w", err)
	}
	return addToken(dir, c.Name, string(text))
}

// called says which server commands call.
func (c *serverContexts) called() string {
	return fmt.Sprintf("commands call %s (%s)", c.Contexts[c.Current].Server, c.Current)
}

// useContext is ringback context use.
type useContext struct {
	// Name of the context, or -.
	Name string `arg:""`
}

// RunCommand makes the context the current one.
func (c *useContext) RunCommand(e *Environment) error {
	return changeContexts(e, func(all *serverContexts) (string, error) {
		if err := all.Use(c.Name); err != nil {
			return "", &ExitError{Code: notFound, Text: err.Error()}
		}
		return all.called(), nil
	})
}

// listContexts is ringback context list.
type listContexts struct{ formatFlags }

// RunCommand lists the contexts.
func (c *listContexts) RunCommand(p *output.Printer) error {
	all, err := contexts()
	if err != nil {
		return err
	}
	list := p.List(views["contexts"])
	for _, name := range all.Names() {
		context := all.Contexts[name]
		row := map[string]any{
			"name": name, "current": name == all.Current, "server": context.Server, "namespace": context.Namespace,
			"token_file": context.TokenFile,
		}
		if err := list.Add(row); err != nil {
			return err
		}
	}
	return list.Close()
}

// removeContext is ringback context remove.
type removeContext struct {
	// Name of the context.
	Name string `arg:""`
}

// RunCommand removes the context.
func (c *removeContext) RunCommand(e *Environment) error {
	return changeContexts(e, func(all *serverContexts) (string, error) {
		if err := all.Remove(c.Name); err != nil {
			return "", &ExitError{Code: notFound, Text: err.Error()}
		}
		return "removed " + c.Name, nil
	})
}

// showContext is ringback context show.
type showContext struct{ connection }

// RunCommand shows the server that the other commands call.
func (c *showContext) RunCommand(p *output.Printer, e *Environment) error {
	target, err := c.find(e)
	if err != nil {
		return err
	}
	return p.One(target)
}
