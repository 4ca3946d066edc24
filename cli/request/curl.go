package request

import (
	"net/http"
	"strings"

	"github.com/ringback/ringback/cli/settings"
)

// Curl returns the request to a server as a command of curl. Tokens stay where they are.
func (r *Request) Curl(to settings.Target) string {
	words := []string{"curl"}
	content := r.Content()
	if r.Method != http.MethodGet && (r.Method != http.MethodPost || content == nil) {
		words = append(words, "-X", r.Method)
	}
	words = append(words, ShellWord(strings.TrimRight(to.Server, "/")+r.Target()))
	switch from := to.TokenFrom; {
	case to.TokenFile != "":
		words = append(words, `-H "Authorization: Bearer $(head -n 1 `+ShellWord(to.TokenFile)+`)"`)
	case from != "":
		words = append(words, `-H "Authorization: Bearer $(echo "$`+from+`" | head -n 1)"`)
	}
	if to.Namespace != "" {
		words = append(words, "-H", ShellWord("Ringback-Namespace: "+to.Namespace))
	}
	for name := range r.Header {
		words = append(words, "-H", ShellWord(name+": "+r.Header.Get(name)))
	}
	if content != nil {
		words = append(words, "--json", ShellWord(string(content)))
	}
	return strings.Join(words, " ")
}

// ShellWord quotes text as one word of a shell command.
func ShellWord(text string) string {
	if text != "" && strings.Trim(text, shellSafe) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// shellSafe are characters that need no quoting.
const shellSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@+%"
