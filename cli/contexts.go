package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"

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

// contexts reads the contexts, and where they are.
func contexts() (serverContexts, string, error) {
	dir, err := settingsDir()
	if err != nil {
		return serverContexts{}, "", &usageError{Err: err}
	}
	all, err := loadContexts(dir)
	if err != nil {
		return serverContexts{}, "", &usageError{Err: err}
	}
	return all, dir, nil
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

// Run adds the context.
func (c *addContext) Run(e *Environment) error {
	all, dir, err := contexts()
	if err != nil {
		return err
	}
	if err := checkServerFlag(c.At); err != nil {
		return &usageError{Err: err}
	}
	context := serverContext{Server: c.At, Namespace: c.Namespace}
	if err := all.Add(c.Name, context); err != nil { // checks the name, before it is that of a file
		return &usageError{Err: err}
	}
	switch {
	case c.TokenStdin && c.TokenFile != "":
		return usagef("--token-stdin cannot be combined with --token-file")
	case c.TokenFile != "":
		if context.TokenFile, err = filepath.Abs(c.TokenFile); err != nil {
			return err
		}
	case c.TokenStdin:
		text, err := e.read("@-")
		if err != nil {
			return err
		}
		if text, err = utf8text.Trim(text); err != nil {
			return usagef("the token %w", err)
		}
		if context.TokenFile, err = addToken(dir, c.Name, string(text)); err != nil {
			return err
		}
	}
	if err := all.Add(c.Name, context); err != nil {
		return &usageError{Err: err}
	}
	if err := all.Save(dir); err != nil {
		return err
	}
	if own := filepath.Join(dir, c.Name+".token"); context.TokenFile != own { // of the context that it replaces
		if err := removeToken(dir, c.Name); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("added %s; ringback context use %s makes it the current context", c.Name, c.Name)
	if all.Current == c.Name {
		text = "commands call " + c.At + " (" + c.Name + ")"
	}
	_, err = fmt.Fprintln(e.Stdout, text)
	return err
}

// useContext is ringback context use.
type useContext struct {
	// Name of the context, or -.
	Name string `arg:""`
}

// Run makes the context the current one.
func (c *useContext) Run(e *Environment) error {
	all, dir, err := contexts()
	if err != nil {
		return err
	}
	if err := all.Use(c.Name); err != nil {
		return &ExitError{Code: notFound, Text: err.Error()}
	}
	if err := all.Save(dir); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "commands call %s (%s)\n", all.Contexts[all.Current].Server, all.Current)
	return err
}

// listContexts is ringback context list.
type listContexts struct{ formatFlags }

// Run lists the contexts.
func (c *listContexts) Run(e *Environment) error {
	p, err := c.printer(e)
	if err != nil {
		return err
	}
	all, _, err := contexts()
	if err != nil {
		return err
	}
	list := p.List(views["contexts"])
	for _, name := range all.Names() {
		context := all.Contexts[name]
		row := requestFields{}
		row.Set("name", name)
		row.Set("current", name == all.Current)
		row.Set("server", context.Server)
		row.Set("namespace", context.Namespace)
		row.Set("token_file", context.TokenFile)
		if err := list.Add(row.Encode()); err != nil {
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

// Run removes the context.
func (c *removeContext) Run(e *Environment) error {
	all, dir, err := contexts()
	if err != nil {
		return err
	}
	if err := all.Remove(dir, c.Name); err != nil {
		return &ExitError{Code: notFound, Text: err.Error()}
	}
	if err := all.Save(dir); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "removed %s\n", c.Name)
	return err
}

// showContext is ringback context show.
type showContext struct{ connection }

// Run shows the server that the other commands call.
func (c *showContext) Run(e *Environment) error {
	p, err := c.printer(e)
	if err != nil {
		return err
	}
	target, err := c.find(e)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(target)
	if err != nil {
		return err
	}
	return p.One(raw)
}
