package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
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

// Run prints one line.
func (versionCommand) Run(p *process) error {
	_, err := fmt.Fprintln(p.stdout, versionLine())
	return err
}

// versionLine returns the version of the program and of its compiler.
func versionLine() string {
	return fmt.Sprintf("ringback %s (%s, %s/%s)", versionName(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
