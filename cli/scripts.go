// This part of the package completes command lines in shells. The script of a shell asks the binary what can follow.

package cli

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completionScripts ask the binary itself what can follow, so that they fit every version of it.
var completionScripts = map[string]string{
	"bash": `_ringback() {
	local IFS=$'\n'
	COMPREPLY=($(ringback __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _ringback ringback
`,
	"zsh": `#compdef ringback
_ringback() {
	local -a found
	found=(${(f)"$(ringback __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null | sed -e 's/:/\\:/g' -e $'s/\t/:/')"})
	if (( $#found )); then _describe 'ringback' found; else _files; fi
}
# A file of fpath is the function itself.
if [[ $funcstack[1] = _ringback ]]; then _ringback "$@"; else compdef _ringback ringback; fi
`,
	"fish": `complete -c ringback -f -a '(ringback __complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

// complete returns a line for each command, flag or value that can follow the words of a command line, the last of
// which may be incomplete: the word, a tab and its help. Contexts are the values of --context.
func complete(node *kong.Node, words []string, contexts func() []string) []string {
	last := ""
	if len(words) > 0 {
		words, last = words[:len(words)-1], words[len(words)-1]
	}
	var previous *kong.Flag
	for _, word := range words {
		if previous = flagOf(node, word); previous != nil {
			continue
		}
		if i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word }); i >= 0 {
			node = node.Children[i]
		}
	}
	var found []string
	add := func(name, help string) {
		if strings.HasPrefix(name, last) {
			found = append(found, name+"\t"+help)
		}
	}
	if values := completionsOf(previous, contexts); values != nil {
		for _, value := range values {
			add(value, "")
		}
		return found
	}
	if previous != nil && !previous.IsBool() {
		return nil // files
	}
	for _, child := range node.Children {
		if !child.Hidden {
			add(child.Name, child.Help)
		}
	}
	for _, p := range node.Positional {
		for _, value := range p.EnumSlice() {
			add(value, "")
		}
	}
	if strings.HasPrefix(last, "-") {
		for _, flag := range node.Flags {
			add("--"+flag.Name, flag.Help)
		}
	}
	return found
}

// flagOf returns the flag that a word names.
func flagOf(node *kong.Node, word string) *kong.Flag {
	for _, flag := range node.Flags {
		if word == "--"+flag.Name || flag.Short != 0 && word == "-"+string(flag.Short) {
			return flag
		}
	}
	return nil
}

// completionsOf returns the values that a flag can have.
func completionsOf(flag *kong.Flag, contexts func() []string) []string {
	switch {
	case flag == nil:
		return nil
	case flag.Name == "context":
		return contexts()
	case flag.Tag.Has("formats"):
		return strings.Split(flag.Tag.Get("formats"), ",")
	case flag.Enum != "":
		return slices.DeleteFunc(flag.EnumSlice(), func(v string) bool { return v == "" })
	}
	return nil
}
