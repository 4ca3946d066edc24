package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// serverContext is a server, and how to call it.
type serverContext struct {
	Server    string `toml:"server"`
	TokenFile string `toml:"token_file,omitempty"`
	Namespace string `toml:"namespace,omitempty"`
}

// serverContexts is the content of contexts.toml.
type serverContexts struct {
	Current  string                   `toml:"current,omitempty"`
	Previous string                   `toml:"previous,omitempty"` // the current one before
	Contexts map[string]serverContext `toml:"contexts,omitempty"`

	dir string // of the file; empty: there is none
}

// errNoContext is the error for a name that no context has.
var errNoContext = errors.New("there is no context")

// settingsDir is the directory of contexts.toml and of the token files that addToken makes.
func settingsDir() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "ringback"), nil
}

// loadContexts reads the contexts; without a file, or with an empty dir, there are none.
func loadContexts(dir string) (serverContexts, error) {
	c := serverContexts{dir: dir}
	if dir != "" {
		if err := decodeFile(filepath.Join(dir, "contexts.toml"), &c); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return serverContexts{}, err
		}
	}
	if c.Contexts == nil {
		c.Contexts = make(map[string]serverContext)
	}
	return c, nil
}

// decodeFile reads a TOML file; keys that to does not have are an error.
func decodeFile(file string, to any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	meta, err := toml.Decode(string(text), to)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return fmt.Errorf("%s: %s is not a known key", file, unknown[0])
	}
	return nil
}

// Save replaces the file of the contexts.
func (c serverContexts) Save() error {
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(c); err != nil {
		return err
	}
	return writeFile(c.dir, "contexts.toml", text.Bytes())
}

// writeFile replaces a file that only its owner can read. A reader sees the old content or the new one.
func writeFile(dir, name string, text []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, name+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), filepath.Join(dir, name))
}

var nameRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Add adds or replaces a context. The first one becomes the current one.
func (c *serverContexts) Add(name string, context serverContext) error {
	if !nameRule.MatchString(name) {
		return fmt.Errorf("%q is not a name of a context: use up to 64 of A-Z a-z 0-9 . _ and -", name)
	}
	c.Contexts[name] = context
	if c.Current == "" {
		c.Current = name
	}
	return nil
}

// addToken stores a token in a file that only its owner can read, and returns the file.
func addToken(dir, name, token string) (string, error) {
	if token = strings.TrimSpace(token); token == "" {
		return "", errors.New("the token is empty")
	}
	return filepath.Join(dir, name+".token"), writeFile(dir, name+".token", []byte(token+"\n"))
}

// Use makes a context the current one; - is the one before.
func (c *serverContexts) Use(name string) error {
	if name == "-" {
		name = c.Previous
	}
	if _, err := c.get(name); err != nil {
		return err
	}
	if name != c.Current {
		c.Current, c.Previous = name, c.Current
	}
	return nil
}

// removeToken removes the token file that addToken made for a context, if it did.
func removeToken(dir, name string) error {
	if err := os.Remove(filepath.Join(dir, name+".token")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Remove removes a context, and the token file that addToken made for it.
func (c *serverContexts) Remove(name string) error {
	if _, err := c.get(name); err != nil {
		return err
	}
	if err := removeToken(c.dir, name); err != nil {
		return err
	}
	delete(c.Contexts, name)
	if c.Current == name {
		c.Current = ""
	}
	if c.Previous == name {
		c.Previous = ""
	}
	return nil
}

// Names returns the names of the contexts in order.
func (c serverContexts) Names() []string { return slices.Sorted(maps.Keys(c.Contexts)) }

func (c serverContexts) get(name string) (serverContext, error) {
	context, ok := c.Contexts[name]
	if !ok {
		known := strings.Join(c.Names(), ", ")
		if known == "" {
			known = "none; ringback context add NAME --server URL adds one"
		}
		return serverContext{}, fmt.Errorf("%w %q (there are: %s)", errNoContext, name, known)
	}
	return context, nil
}
