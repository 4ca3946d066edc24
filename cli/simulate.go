package cli

import (
	"github.com/ringback/ringback/cli/output"
)

// simulateCommand is ringback simulate.
type simulateCommand struct {
	ladderFlags
	formatFlags
}

// RunCommand prints when the attempts are made if all fail with status 500.
func (c *simulateCommand) RunCommand(p *output.Printer) error {
	attempts, start, err := c.Attempts()
	if err != nil {
		return &usageError{Err: err}
	}
	list := p.List(views["planned"])
	for _, attempt := range attempts {
		if err := list.Add(attempt.Row(start)); err != nil {
			return err
		}
	}
	return list.Close()
}
