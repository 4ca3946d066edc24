package main

import (
	"errors"
	"fmt"
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
	return nil, nil //nolint:nilnil // kong's convention for no value
}

// readFile reads the configuration file before flags are resolved, if the command has a flag for one.
func (s *settings) readFile(ctx *kong.Context) error {
	for _, flag := range ctx.Flags() {
		if flag.Name != configFlagName {
			continue
		}
		path, _ := ctx.FlagValue(flag).(string)
		if path == "" {
			path = s.env[variable(flag.Value)]
		}
		var err error
		s.file, err = readConfigFile(path, settingsOf(ctx.Model))
		return err
	}
	return nil
}

// locate puts the place in the configuration file before each of the joined errors about a setting that comes from there.
func (s *settings) locate(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, s.locate(one))
		}
		return errors.Join(all...)
	}
	name, _, found := strings.Cut(fmt.Sprint(err), ":")
	if set, ok := s.file.get(name); found && ok && s.from[name] == s.file.at(set.line) {
		return fmt.Errorf("%s: %w", s.from[name], err)
	}
	return err
}
