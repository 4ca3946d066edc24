package cli

import (
	"net/http"
	"strings"
)

// Curl returns the request to a server as a command of curl. Tokens stay where they are.
func (r *apiRequest) Curl(to serverTarget) string {
	words := []string{"curl"}
	content := r.Content()
	if r.Method != http.MethodGet && (r.Method != http.MethodPost || content == nil) {
		words = append(words, "-X", r.Method)
	}
	words = append(words, ShellWord(strings.TrimRight(to.Server, "/")+r.Target()))
	token := "" // the command that prints its header: arguments of a command are visible to all users of a machine
	switch from := to.TokenFrom; {
	case to.TokenFile != "":
		token = `sed -n '1s/^/Authorization: Bearer /p' ` + ShellWord(to.TokenFile) + ` | `
	case from != "":
		token = `echo "Authorization: Bearer $` + from + `" | head -n 1 | ` // echo is a builtin
	}
	if token != "" {
		words = append(words, "-H", "@-")
	}
	if to.Namespace != "" {
		words = append(words, "-H", ShellWord("Ringback-Namespace: "+to.Namespace))
	}
	for name, values := range r.Header {
		words = append(words, "-H", ShellWord(name+": "+values[0]))
	}
	if content != nil {
		words = append(words, "-H", "'Content-Type: application/json'", "--data-raw", ShellWord(string(content)))
	}
	return token + strings.Join(words, " ")
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
