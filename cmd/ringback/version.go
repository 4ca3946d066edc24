package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/alecthomas/kong"
)

// version is set by the build (-ldflags '-X main.version=v1.2.3').
var version string

// versionName returns the version set by the build, else the module version, else dev.
func versionName() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// versionCommand is ringback version.
type versionCommand struct{}

// RunCommand prints one line.
func (versionCommand) RunCommand(p *process) error {
	_, err := fmt.Fprintln(p.stdout, versionLine())
	return err
}

// hasVersionFlag reports whether --version was given.
func hasVersionFlag(c *kong.Context) bool {
	return slices.ContainsFunc(c.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == "version" })
}

// versionLine returns the version of the program and of its compiler.
func versionLine() string {
	return fmt.Sprintf("ringback %s (%s, %s/%s)", versionName(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
