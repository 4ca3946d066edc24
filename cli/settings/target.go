package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/ringback/ringback/internal/secretfile"
)

// DefaultServer is called when nothing names another server.
const DefaultServer = "http://127.0.0.1:8080"

// Variables are the variables that choose the server and the token.
const (
	ServerVariable    = "RINGBACK_SERVER"
	ContextVariable   = "RINGBACK_CONTEXT"
	NamespaceVariable = "RINGBACK_NAMESPACE"
	TokenVariable     = "RINGBACK_TOKEN"
	TokenFileVariable = "RINGBACK_TOKEN_FILE"
)

// Flags are the flags of a command that choose the server.
type Flags struct{ Server, Context, TokenFile, Namespace string }

// Target is a server, and where the settings came from.
type Target struct {
	Server        string `json:"server"`
	ServerFrom    string `json:"server_from"`
	Context       string `json:"context"`    // empty: none
	TokenFrom     string `json:"token_from"` // empty: no token is sent
	TokenFile     string `json:"token_file"` // empty: it is from a variable
	Namespace     string `json:"namespace"`  // empty: that of the token
	NamespaceFrom string `json:"namespace_from"`
	Token         string `json:"-"`
	Warning       string `json:"-"` // about the mode of the token's file
}

// Find returns the server that is called from a working directory. A flag comes before a variable, a variable before
// .ringback.toml, that before the current context, and that before DefaultServer. Env are variables by name.
func Find(flags Flags, env map[string]string, dir, working string) (Target, error) {
	contexts, err := Load(dir)
	if err != nil {
		return Target{}, err
	}
	project, err := findProject(working)
	if err != nil {
		return Target{}, err
	}
	t, context, err := choose(flags, env, project, contexts)
	if err != nil {
		return Target{}, err
	}
	t.Namespace, t.NamespaceFrom = first(
		source{flags.Namespace, "--namespace"}, source{env[NamespaceVariable], NamespaceVariable},
		source{project.Namespace, project.file}, source{context.Namespace, "context " + t.Context},
	)
	if err := t.setToken(flags.TokenFile, context.TokenFile, env); err != nil {
		return Target{}, err
	}
	return t, nil
}

// source is a value and where it is from.
type source struct{ value, from string }

// first returns the first value that is set.
func first(all ...source) (value, from string) {
	for _, s := range all {
		if s.value != "" {
			return s.value, s.from
		}
	}
	return "", ""
}

// choose finds the server: one that is named, or that of a context.
func choose(flags Flags, env map[string]string, project project, contexts Contexts) (Target, Context, error) {
	levels := []struct{ server, context source }{
		{source{flags.Server, "--server"}, source{flags.Context, "--context"}},
		{source{env[ServerVariable], ServerVariable}, source{env[ContextVariable], ContextVariable}},
		{context: source{project.Context, project.file}},
		{context: source{contexts.Current, "the current context"}},
		{server: source{DefaultServer, "the default"}},
	}
	for _, level := range levels {
		switch server, context := level.server, level.context; {
		case server.value != "" && context.value != "":
			return Target{}, Context{}, fmt.Errorf("%s cannot be combined with %s", server.from, context.from)
		case server.value != "":
			return Target{Server: server.value, ServerFrom: server.from}, Context{}, checkServer(server)
		case context.value != "":
			found, err := contexts.get(context.value)
			if err != nil {
				return Target{}, Context{}, fmt.Errorf("%s: %w", context.from, err)
			}
			return Target{Server: found.Server, ServerFrom: context.from, Context: context.value}, found, nil
		}
	}
	panic("there is a default server")
}

// CheckServer returns an error for what is not the URL of a server.
func CheckServer(server string) error { return checkServer(source{server, "--server"}) }

func checkServer(s source) error {
	u, err := url.Parse(s.value)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return fmt.Errorf("%s: must be http:// or https://, a host and perhaps a port and a path, such as %s", s.from,
			DefaultServer)
	}
	return nil
}

// setToken reads the token: the first one of a file or of RINGBACK_TOKEN, as these may have several for the server.
func (t *Target) setToken(flag, context string, env map[string]string) error {
	token := env[TokenVariable]
	variable := env[TokenFileVariable]
	if flag == "" && context == "" && token != "" && variable != "" {
		return fmt.Errorf("%s cannot be combined with %s", TokenVariable, TokenFileVariable)
	}
	file, from := first(source{flag, "--token-file"}, source{context, "context " + t.Context},
		source{variable, TokenFileVariable})
	switch {
	case flag == "" && context == "" && token != "":
		t.TokenFrom = TokenVariable
	case file == "":
		return nil
	default:
		text, mode, err := secretfile.Read(file)
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		if secretfile.IsPublic(mode) {
			t.Warning = fmt.Sprintf("all users can read the token in %s: chmod go-r it", file)
		}
		token, t.TokenFrom, t.TokenFile = text, from, file
	}
	token, _, _ = strings.Cut(strings.TrimSpace(token), "\n")
	t.Token = strings.TrimSpace(token)
	return nil
}

// project is the content of .ringback.toml.
type project struct {
	Context   string `toml:"context"`
	Namespace string `toml:"namespace"`
	file      string
}

// findProject reads .ringback.toml of a directory, or of the nearest one above it.
func findProject(dir string) (project, error) {
	for {
		p := project{file: filepath.Join(dir, ".ringback.toml")}
		err := decode(p.file, &p)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
			return project{}, err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return project{}, nil
		}
		dir = parent
	}
}
