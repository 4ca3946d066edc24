package cli

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// ErrPrinted is the error of a command line that only asks for a text, which was printed.
var ErrPrinted = errors.New("the text was printed")

// checker is a command that checks its flags and arguments.
type checker interface {
	CheckLine(command *kong.Node) error
}

// Parse parses a command line. It calls prepare, unless that is nil, before flags are resolved that the line does not
// have. Errors are those of the line; then the context has what was understood.
//
// Together with Run it replaces kong's Parse and Run, which look up methods by names that are not constants: with them
// the linker has to keep all exported methods of the program, and the binary is 9 MB larger.
func Parse(k *kong.Kong, args []string, prepare func(*kong.Context) error) (*kong.Context, error) {
	c, err := kong.Trace(k, args)
	if err != nil {
		return nil, fmt.Errorf("read the command line: %w", err)
	}
	if c.Error != nil {
		return c, c.Error
	}
	if slices.ContainsFunc(c.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag == k.Model.HelpFlag }) {
		if err := c.PrintUsage(false); err != nil {
			return c, err
		}
		return c, ErrPrinted
	}
	if err := c.Reset(); err != nil {
		return c, err
	}
	if prepare != nil {
		if err := prepare(c); err != nil {
			return c, err
		}
	}
	if err := c.Resolve(); err != nil {
		return c, err
	}
	if _, err := c.Apply(); err != nil {
		return c, err
	}
	return c, checkLine(c)
}

// checkLine returns an error for a flag or argument with a value that is none of its list, for the first that are
// missing, and those of the command's CheckLine.
func checkLine(c *kong.Context) error {
	command := c.Model.Node
	for _, path := range c.Path {
		node := path.Node()
		if node == nil {
			continue
		}
		command = node
		for _, v := range node.Values() {
			if err := checkEnum(v); err != nil {
				return err
			}
		}
		if err := checkFlags(node); err != nil {
			return err
		}
	}
	if err := checkComplete(command); err != nil {
		return err
	}
	if with, ok := reflect.TypeAssert[checker](command.Target.Addr()); ok {
		return with.CheckLine(command)
	}
	return nil
}

// checkEnum returns an error for a value that is none of its list.
func checkEnum(v *kong.Value) error {
	value := fmt.Sprint(v.Target)
	if v.Enum == "" || !v.Set && !v.HasDefault || slices.Contains(v.EnumSlice(), value) {
		return nil
	}
	allowed := strings.Trim(fmt.Sprintf("%q", v.EnumSlice()), "[]")
	return fmt.Errorf("%s must be one of %s but got %q", v.ShortSummary(), strings.ReplaceAll(allowed, " ", ","), value)
}

// checkFlags returns an error for required flags of a command that are missing.
func checkFlags(command *kong.Node) error {
	var missing []string
	for _, f := range command.Flags {
		if f.Required && !f.Set {
			missing = append(missing, f.Summary())
		}
	}
	if missing == nil {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("missing flags: %s", strings.Join(missing, ", "))
}

// checkComplete returns an error for a line that ends before a required argument or subcommand.
func checkComplete(command *kong.Node) error {
	var args, missing []string
	for _, arg := range command.Positional {
		if arg.Required && !arg.Set {
			args = append(args, arg.Summary())
		}
	}
	if args != nil {
		missing = append(missing, strconv.Quote(strings.Join(args, " ")))
	}
	for _, child := range command.Children {
		if !child.Hidden {
			missing = append(missing, strconv.Quote(child.Name))
		}
	}
	switch n := len(missing); {
	case n == 0:
		return nil
	case n == 1:
		return fmt.Errorf("expected %s", missing[0])
	case n > 5:
		missing = append(missing[:5], "...")
	}
	return fmt.Errorf("expected one of %s", strings.Join(missing, ", "))
}

// Run calls the method RunCommand of the command that was parsed. Its parameters are what kong binds, a value of
// bindings, or what a method of the command provides.
func Run(c *kong.Context, bindings ...any) error {
	command := c.Selected().Target.Addr()
	for _, provider := range []reflect.Value{
		command.MethodByName("ProvidePrinter"), command.MethodByName("ProvideSession"),
		command.MethodByName("ProvideRequest"),
	} {
		if provider.IsValid() {
			if err := c.BindToProvider(provider.Interface()); err != nil {
				return fmt.Errorf("run %s: %w", c.Selected().FullPath(), err)
			}
		}
	}
	results, err := c.Call(command.MethodByName("RunCommand").Interface(), bindings...)
	if err != nil {
		return err // the provider's
	}
	err, _ = results[0].(error)
	return err
}
