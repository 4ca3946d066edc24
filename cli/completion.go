package cli

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// completionCommand is ringback completion.
type completionCommand struct {
	// bash, zsh or fish.
	Shell string `arg:"" enum:"bash,zsh,fish"`
}

// RunCommand prints the script.
func (c *completionCommand) RunCommand(e *Environment) error {
	_, err := fmt.Fprint(e.Stdout, completionScripts[c.Shell])
	return err
}

// completeCommand prints what can follow the words of a command line, the last of which may be incomplete.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// RunCommand prints a line for each word: the word, a tab and its help.
func (c *completeCommand) RunCommand(k *kong.Context, e *Environment) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, line := range complete(k.Model.Node, words, contextNames) {
		if _, err := fmt.Fprintln(e.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}

// contextNames returns the names of the contexts.
func contextNames() []string {
	all, err := contexts()
	if err != nil {
		return nil
	}
	return all.Names()
}
