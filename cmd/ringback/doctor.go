package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/ringback/ringback/internal/app"
	"github.com/ringback/ringback/internal/doctor"
)

// doctorCommand is ringback doctor.
type doctorCommand struct {
	serveFlags `embed:""`

	// URL of a running service, which must answer then. Default: the address in --addr, if a service runs there.
	Server string `placeholder:"URL" variable:"-"`
	// Format of the findings. json is an array with an object for each.
	Output string `short:"o" default:"text" enum:"text,json" placeholder:"text|json" variable:"RINGBACK_DOCTOR_OUTPUT"`
}

// RunCommand prints the findings, and fails if one of them is a fault.
func (c *doctorCommand) RunCommand(ctx context.Context, p *process) error {
	server, err := c.server()
	if err != nil {
		return &usageError{err}
	}
	options, err := c.read(p, c.AllowPrivate, c.Roles)
	more := app.DoctorOptions{
		Server: server, ServerNamed: c.Server != "", NeedsToken: c.TokenFile != "",
		EncryptsSecrets: c.SecretKeyFile != "",
	}
	_, untraced := traces()
	if err = errors.Join(err, untraced, options.Validate(), options.CheckFiles()); err != nil {
		more.Err = p.settings.locate(err)
	}
	findings := app.Doctor(ctx, options, more)
	if c.Output == "json" {
		out := json.NewEncoder(p.stdout)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		err = out.Encode(findings)
	} else {
		err = doctor.WriteText(p.stdout, findings)
	}
	if err == nil && doctor.Worst(findings) == doctor.Fault {
		err = errors.New("there are faults")
	}
	return err
}

// server returns the URL of the service to ask; empty: none can be known.
func (c *doctorCommand) server() (string, error) {
	if c.Server == "" {
		_, port, err := net.SplitHostPort(c.Addr)
		if err != nil || port == "0" {
			return "", nil //nolint:nilerr // it is a finding about the settings
		}
		return "http://" + callableAddr(c.Addr), nil
	}
	u, err := url.Parse(c.Server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return "", fmt.Errorf("server: must be a URL such as http://127.0.0.1:8080")
	}
	return c.Server, nil
}
