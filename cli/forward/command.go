package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/ringback/ringback/cli/output"
)

// Command runs the command with its flags: deliveries are printed, and what else there is to say is written to stderr.
func Command(ctx context.Context, flags *Flags, o Options, out *output.Printer, stderr io.Writer) error {
	if err := flags.apply(&o); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var failed error // of the output
	o.Say = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(stderr, output.Printable(text))
	}
	o.Report = func(d Delivery) {
		mu.Lock()
		defer mu.Unlock()
		if err := out.OneLine(d.line(out.Colored), d); err != nil {
			failed = err
			cancel()
		}
	}
	return errors.Join(Run(ctx, o), failed)
}

// line is a delivery for people. The status has the colour of a state.
func (d *Delivery) line(colored func(text, state string) string) string {
	status, state := "failed", "failed"
	if d.Status != 0 {
		status = strconv.Itoa(d.Status)
	}
	if d.Status >= 200 && d.Status < 300 {
		state = "delivered"
	}
	text := fmt.Sprintf("%s  %s  %s  %s  attempt %d  %s", d.At.Format("15:04:05.000"), colored(status, state),
		output.Printable(d.Topic),
		output.Printable(d.ID), d.Attempt, output.Milliseconds(d.DurationMS))
	if d.Error != "" {
		text += "  " + output.Printable(d.Error)
	}
	return text
}
