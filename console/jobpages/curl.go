package jobpages

import (
	"bytes"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/form"
)

const (
	// maxShownBody bounds the part of a body that a page shows, in bytes.
	maxShownBody = 32 << 10
	// maxCommandBody bounds the bodies that commands have: a page has two of them beside the body.
	maxCommandBody = 4 << 10
)

// quote quotes a text for a POSIX shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// variable returns the name of the shell variable that stands for the value of a secret header.
func variable(header string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(header))
	if name == "" || name[0] <= '9' {
		name = "_" + name
	}
	return name
}

// receiverCommand returns a command that makes the request of a job with curl, without what Ringback adds: the
// signature, and headers of the lane and the topic. Shell variables stand for secrets, and the file body for a body
// that is too long.
func receiverCommand(j *client.JobInfo, url string) string {
	parts := []string{"curl -X " + quote(j.Method)}
	if strings.ContainsAny(url, "[]{}") {
		parts[0] += " --globoff"
	}
	if strings.Contains(url, "/.") { // curl would resolve /a/../b
		parts[0] += " --path-as-is"
	}
	parts[0] += " " + quote(url)
	if len(j.Body) > 0 {
		parts = append(parts, contentTypeArgument(j.ContentType))
	}
	for _, name := range slices.Sorted(maps.Keys(j.Headers)) {
		if strings.EqualFold(name, "Content-Type") {
			continue
		}
		if isRedacted(j.Headers[name]) {
			parts = append(parts, "-H "+quote(name+": ")+`"$`+variable(name)+`"`)
			continue
		}
		for _, value := range j.Headers[name] {
			parts = append(parts, "-H "+quote(headerArgument(name, value)))
		}
	}
	before := ""
	switch {
	case len(j.Body) == 0:
	case len(j.Body) > maxCommandBody:
		// of a file that is not there curl would send an empty body; a shell ends
		parts = append(parts, "--data-binary @- < body")
	default:
		var data string
		before, data = dataArgument(j.Body)
		parts = append(parts, data)
	}
	return before + strings.Join(parts, " \\\n  ")
}

// dataArgument returns the argument for a body, and what stands before curl. A terminal obeys control characters that
// are pasted, so a body with such is in base64.
func dataArgument(body []byte) (before, argument string) {
	isControl := func(r rune) bool { return unicode.IsControl(r) && r != '\n' }
	if utf8.Valid(body) && !bytes.ContainsFunc(body, isControl) {
		return "", "--data-raw " + quote(string(body))
	}
	return "printf %s " + quote(base64.StdEncoding.EncodeToString(body)) + " | base64 -d | ", "--data-binary @-"
}

// contentTypeArgument returns the argument for a content type; without one curl would send its own.
func contentTypeArgument(contentType string) string {
	if contentType == "" {
		return "-H 'Content-Type:'"
	}
	return "-H " + quote("Content-Type: "+contentType)
}

// headerArgument returns a header as curl reads it. An empty one ends with a semicolon.
func headerArgument(name, value string) string {
	if value == "" {
		return name + ";"
	}
	return name + ": " + value
}

// registerCommand returns a command that registers a copy of a job with curl, and the names of the secret headers that
// it lacks. It is empty if the body is too long, or may not be read.
func registerCommand(j *client.JobInfo, namespace string) (command string, secrets []string) {
	if len(j.Body) > maxCommandBody {
		return "", nil
	}
	copied, secrets := form.CopyOf(j)
	text, _, _ := form.Job.Document(copied, form.Job.Texts(copied))
	parts := []string{
		`curl -X ` + http.MethodPost + ` "$RINGBACK_SERVER/v1/jobs"`, `-H "Authorization: Bearer $RINGBACK_TOKEN"`,
		"-H 'Content-Type: application/json'",
	}
	if namespace != "" && namespace != "default" {
		parts = append(parts, "-H "+quote("Ringback-Namespace: "+namespace))
	}
	before, data := dataArgument(text)
	return before + strings.Join(append(parts, data), " \\\n  "), secrets
}
