package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"github.com/ringback/ringback/internal/typo"
	"github.com/ringback/ringback/internal/utf8text"
)

const (
	// defaultConfigFile is read if it is in the working directory.
	defaultConfigFile = "ringback.yaml"
	configFlagName    = "config"
	// maxConfigFile bounds the configuration file, in bytes.
	maxConfigFile = 1 << 20
)

// configFlag is the flag of commands that read the configuration file.
type configFlag struct {
	// File with settings in YAML: the names of flags with _ for -, as in max_body: 1MiB. Variables and flags override
	// it. Default: ringback.yaml in the working directory, if there is one.
	Config string `placeholder:"FILE"`
}

// A configFile has the settings of a configuration file. A nil one has none.
type configFile struct {
	path   string
	values map[string]fileSetting // by the name of the flag
}

// A fileSetting is one setting of a configuration file.
type fileSetting struct {
	value any // a string or []any, as kong takes it
	line  int
}

// get returns the setting of a flag.
func (f *configFile) get(flag string) (fileSetting, bool) {
	if f == nil {
		return fileSetting{}, false
	}
	set, ok := f.values[flag]
	return set, ok
}

// at returns the name of a line.
func (f *configFile) at(line int) string { return fmt.Sprintf("%s:%d", f.path, line) }

// settingsOf returns the flags that a configuration file can set: those of serve and dev, by name.
func settingsOf(model *kong.Application) map[string]*kong.Flag {
	flags := make(map[string]*kong.Flag)
	for _, command := range model.Children {
		if command.Name != "dev" && command.Name != "serve" {
			continue
		}
		for _, flag := range command.Flags {
			if variable(flag.Value) != "" && flag.Name != configFlagName {
				flags[flag.Name] = flag
			}
		}
	}
	return flags
}

// readConfigFile reads the file, by default ringback.yaml if there is one. Its error joins all faults, each with its
// line.
func readConfigFile(path string, flags map[string]*kong.Flag) (*configFile, error) {
	file := &configFile{path: cmp.Or(path, defaultConfigFile), values: map[string]fileSetting{}}
	text, err := readBounded(file.path, maxConfigFile)
	if path == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no file has no settings
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if text, err = utf8text.Trim(text); err != nil {
		return nil, fmt.Errorf("%s: %w", file.path, err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", file.path, err)
	}
	if len(document.Content) == 0 { // nothing but comments
		return file, nil
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: must have a setting a line, such as addr: 127.0.0.1:8080", file.at(root.Line))
	}
	var faults []error
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if err := file.set(key, value, flags); err != nil {
			faults = append(faults, fmt.Errorf("%s: %s: %w", file.at(key.Line), key.Value, err))
		}
	}
	return file, errors.Join(faults...)
}

// settingNames yields the names that flags have in the file.
func settingNames(flags map[string]*kong.Flag) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range flags {
			if !yield(strings.ReplaceAll(name, "-", "_")) {
				return
			}
		}
	}
}

// set sets the value of a key, if the flag accepts it.
func (f *configFile) set(key, node *yaml.Node, flags map[string]*kong.Flag) error {
	name := strings.ReplaceAll(key.Value, "_", "-")
	flag, ok := flags[name]
	switch before, twice := f.values[name]; {
	case twice:
		return fmt.Errorf("is set twice, also in line %d", before.line)
	case key.Value == "token", key.Value == "secret_key", key.Value == "metrics_token":
		return fmt.Errorf("is a secret, and does not belong here: set %s_file to the path of a file", key.Value)
	case ok && strings.Contains(key.Value, "-"):
		return fmt.Errorf("is written %s", strings.ReplaceAll(name, "-", "_"))
	case !ok:
		hint := typo.Hint(key.Value, settingNames(flags))
		return errors.New("is not a setting: ringback serve --help lists them" + hint)
	}
	list := flag.Target.Type() == reflect.TypeFor[[]string]()
	value, err := flatten(node, list)
	if err != nil {
		return err
	}
	f.values[name] = fileSetting{value, key.Line}
	target := reflect.New(flag.Target.Type()).Elem()
	scan := kong.Scan().PushTyped(value, kong.FlagValueToken)
	if err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, target); err != nil {
		return err // the caller names the key
	}
	if flag.Enum != "" && !slices.Contains(flag.EnumSlice(), target.String()) {
		return fmt.Errorf("%q is not %s", target, strings.Join(flag.EnumSlice(), " or "))
	}
	return nil
}

// flatten converts a value to what a flag takes: a text, or []any if the flag has a list. A mapping is a list of
// NAME=VALUE.
func flatten(node *yaml.Node, list bool) (any, error) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	items := []*yaml.Node{node}
	if node.Kind != yaml.ScalarNode {
		items = node.Content
	}
	var texts []any
	for i := 0; i < len(items); i++ {
		item, name := items[i], ""
		if node.Kind == yaml.MappingNode {
			name, item, i = items[i].Value, items[i+1], i+1
		}
		switch {
		case item.Kind != yaml.ScalarNode:
			return nil, errors.New("has a list or a mapping within: write texts")
		case item.Tag == "!!null":
			return nil, errors.New("has no value: give one, or remove the line")
		case name == "":
			texts = append(texts, item.Value)
		case item.Tag == "!!bool" && item.Value == "true":
			texts = append(texts, name)
		case item.Tag == "!!bool":
		default:
			texts = append(texts, name+"="+item.Value)
		}
	}
	if list && node.Kind != yaml.ScalarNode {
		return texts, nil
	}
	var all []string
	for _, text := range texts {
		all = append(all, fmt.Sprint(text))
	}
	return strings.Join(all, ","), nil
}

// readBounded returns the content of a file of at most so many bytes.
func readBounded(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err // it names the file
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return text, err
}
