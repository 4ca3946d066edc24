// This part of the package finds the server that a command calls, and the token that it sends there.
//
// A context is a server with its token file and namespace, under a name. The contexts are in contexts.toml in the
// directory ringback of the user's configuration directory:
//
//	current = "prod"
//
//	[contexts.prod]
//	server = "https://ringback.internal"
//	token_file = "/home/anna/.config/ringback/prod.token"
//	namespace = "shop"
//
// A file .ringback.toml in the working directory, or the nearest directory above it, chooses one for a project:
//
//	context = "prod"
//	namespace = "shop"
//
// It names a context and nothing else, so that a directory that was downloaded cannot send a token to a server of its
// choice. For the same reason the token of a context is sent to the server of that context only.

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/ringback/ringback/internal/fileread"
)

// defaultServer is called when nothing names another server.
const defaultServer = "http://127.0.0.1:8080"

// Variables are the variables that choose the server and the token.
const (
	serverVariable    = "RINGBACK_SERVER"
	contextVariable   = "RINGBACK_CONTEXT"
	namespaceVariable = "RINGBACK_NAMESPACE"
	tokenVariable     = "RINGBACK_TOKEN"
	tokenFileVariable = "RINGBACK_TOKEN_FILE"
)

// targetFlags are the flags of a command that choose the server.
type targetFlags struct {
	// Server to call ($RINGBACK_SERVER). Default: that of the context, else http://127.0.0.1:8080.
	Server string `group:"output" in:"none" placeholder:"URL"`
	// Context to use ($RINGBACK_CONTEXT). Default: that of .ringback.toml, else the current one.
	Context string `group:"output" in:"none" placeholder:"NAME"`
	// File with the token ($RINGBACK_TOKEN_FILE; $RINGBACK_TOKEN is the token itself). Default: that of the context.
	TokenFile string `group:"output" in:"none" placeholder:"FILE"`
	// Namespace, for root tokens ($RINGBACK_NAMESPACE).
	Namespace string `group:"output" in:"none" placeholder:"NAME"`
}

// serverTarget is a server, and where the settings came from.
type serverTarget struct {
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

// findTarget returns the server that is called from a working directory. A flag comes before a variable, a variable
// before .ringback.toml, that before the current context, and that before defaultServer. Env are variables by name.
func findTarget(flags targetFlags, env map[string]string, dir, working string) (serverTarget, error) {
	contexts, err := loadContexts(dir)
	if err != nil {
		return serverTarget{}, err
	}
	project, err := findProject(working)
	if err != nil {
		return serverTarget{}, err
	}
	t, context, err := choose(flags, env, project, contexts)
	if err != nil {
		return serverTarget{}, err
	}
	t.Namespace, t.NamespaceFrom = firstSource(
		source{flags.Namespace, "--namespace"}, source{env[namespaceVariable], namespaceVariable},
		source{project.Namespace, project.file}, source{context.Namespace, "context " + t.Context},
	)
	if err := t.setToken(flags.TokenFile, context.TokenFile, env); err != nil {
		return serverTarget{}, err
	}
	return t, nil
}

// source is a value and where it is from.
type source struct{ value, from string }

// firstSource returns the first value that is set.
func firstSource(all ...source) (value, from string) {
	for _, s := range all {
		if s.value != "" {
			return s.value, s.from
		}
	}
	return "", ""
}

// choose finds the server: one that is named, or that of a context.
func choose(
	flags targetFlags, env map[string]string, project project, contexts serverContexts,
) (serverTarget, serverContext, error) {
	levels := []struct{ server, context source }{
		{source{flags.Server, "--server"}, source{flags.Context, "--context"}},
		{source{env[serverVariable], serverVariable}, source{env[contextVariable], contextVariable}},
		{context: source{project.Context, project.file}},
		{context: source{contexts.Current, "the current context"}},
		{server: source{defaultServer, "the default"}},
	}
	for _, level := range levels {
		switch server, context := level.server, level.context; {
		case server.value != "" && context.value != "":
			return serverTarget{}, serverContext{},
				fmt.Errorf("%s cannot be combined with %s", server.from, context.from)
		case server.value != "":
			return serverTarget{Server: server.value, ServerFrom: server.from}, serverContext{}, checkServer(server)
		case context.value != "":
			found, err := contexts.get(context.value)
			if err != nil {
				return serverTarget{}, serverContext{}, fmt.Errorf("%s: %w", context.from, err)
			}
			return serverTarget{Server: found.Server, ServerFrom: context.from, Context: context.value}, found, nil
		}
	}
	panic("there is a default server")
}

// checkServerFlag returns an error for what is not the URL of a server.
func checkServerFlag(server string) error { return checkServer(source{server, "--server"}) }

func checkServer(s source) error {
	u, err := url.Parse(s.value)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return fmt.Errorf("%s: must be http:// or https://, a host and perhaps a port and a path, such as %s", s.from,
			defaultServer)
	}
	return nil
}

// setToken reads the token: the first one of a file or of RINGBACK_TOKEN, as these may have several for the server.
func (t *serverTarget) setToken(flag, context string, env map[string]string) error {
	token := env[tokenVariable]
	variable := env[tokenFileVariable]
	if flag == "" && context == "" && token != "" && variable != "" {
		return fmt.Errorf("%s cannot be combined with %s", tokenVariable, tokenFileVariable)
	}
	file, from := firstSource(source{flag, "--token-file"}, source{context, "context " + t.Context},
		source{variable, tokenFileVariable})
	switch {
	case flag == "" && context == "" && token != "":
		t.TokenFrom = tokenVariable
	case file == "":
		return nil
	default:
		text, mode, err := fileread.ReadSecret(file)
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		if fileread.IsPublic(mode) {
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
		err := decodeFile(p.file, &p)
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
