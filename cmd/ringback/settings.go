package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"

	"github.com/alecthomas/kong"
)

// settings resolve the flags that are not on the command line: from the environment, else from the configuration file.
type settings struct {
	env  environment
	file *configFile
	from map[string]string // the source of each flag that was resolved
}

// Validate is part of kong.Resolver.
func (s *settings) Validate(*kong.Application) error { return nil }

// Resolve returns the value of a flag, as part of kong.Resolver.
func (s *settings) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if name := variable(flag.Value); s.env[name] != "" {
		s.from[flag.Name] = "$" + name
		return s.env[name], nil
	}
	if set, ok := s.file.get(flag.Name); ok {
		s.from[flag.Name] = s.file.at(set.line)
		return set.value, nil
	}
	return nil, nil // kong's convention for no value
}

// readFile reads the configuration file before flags are resolved, if the command has a flag for one.
func (s *settings) readFile(ctx *kong.Context) error {
	for _, flag := range ctx.Flags() {
		if flag.Name != configFlagName {
			continue
		}
		path, _ := ctx.FlagValue(flag).(string)
		if name := variable(flag.Value); path == "" && s.env[name] != "" {
			path, s.from[configFlagName] = s.env[name], "$"+name
		}
		var err error
		s.file, err = readConfigFile(path, settingsOf(ctx.Model))
		if _, unread := errors.AsType[*fs.PathError](err); unread {
			err = s.locateFlag(configFlagName, err)
		}
		return err
	}
	return nil
}

// locate puts before each of the joined errors about a setting where it is from: a variable, or a line of the
// configuration file.
func (s *settings) locate(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, s.locate(one))
		}
		return errors.Join(all...)
	}
	if usage, ok := err.(*usageError); ok { //nolint:errorlint // one that is wrapped has its place already
		return &usageError{s.locate(usage.error)}
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprint(err), "--"), ":")
	name, _, _ = strings.Cut(name, " ") // kong: --log must be one of …
	return s.locateFlag(name, err)
}

// locateFlag puts before an error about a flag where its value is from, unless that is the command line or the default.
func (s *settings) locateFlag(flag string, err error) error {
	if from := s.from[flag]; from != "" && err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return err
}

// locateInbox is locateFlag for the error of an inbox, which is about its address or its keys.
func (s *settings) locateInbox(addr, keys string, err error) error {
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return s.locateFlag(addr, err)
	}
	return s.locateFlag(keys, err)
}
