package jobform

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/job/units"
)

// Redacted is what the API shows of secrets.
const Redacted = "[redacted]"

// IsRedacted reports whether the values of a header are the placeholder of a secret.
func IsRedacted(values []string) bool { return len(values) == 1 && values[0] == Redacted }

// withoutSecrets returns the headers whose values the API shows, and the names of the others behind a prefix.
func withoutSecrets(headers client.Headers, prefix string) (open client.Headers, secrets []string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if IsRedacted(headers[name]) {
			secrets = append(secrets, prefix+name)
			continue
		}
		if open == nil {
			open = make(client.Headers)
		}
		open[name] = headers[name]
	}
	return open, secrets
}

// FormatHeaders returns a line for each value, without spaces at its end, as a browser's text is compared.
func FormatHeaders(headers client.Headers) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		for _, value := range headers[name] {
			lines = append(lines, strings.TrimRight(name+": "+value, " "))
		}
	}
	return strings.Join(lines, "\n")
}

// formatLabels returns a line for each label. Values that a line would change are JSON strings.
func formatLabels(labels map[string]string) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		value := labels[name]
		if value != strings.TrimSpace(value) || strings.HasPrefix(value, `"`) || !isBrowserSafe(value) ||
			strings.Contains(value, "\n") {
			if quoted, err := json.Marshal(value); err == nil {
				value = string(quoted)
			}
		}
		lines = append(lines, name+"="+value)
	}
	return strings.Join(lines, "\n")
}

// formatCallback returns the text of a callback without its secret headers, and the names of these.
func formatCallback(c *client.Callback, field string) (text string, secrets []string) {
	if c == nil {
		return "", nil
	}
	open := *c
	open.Headers, secrets = withoutSecrets(c.Headers, field+".headers.")
	return callbackText(&open), secrets
}

// callbackText returns a callback as the form has it: its URL, or the object if there is more.
func callbackText(c *client.Callback) string {
	switch {
	case c == nil:
		return ""
	case c.URL == "":
		return none
	case (c.Method == "" || c.Method == http.MethodPost) && len(c.Headers) == 0 && c.Retries == nil && c.Timeout == 0 &&
		len(c.Include) == 0:
		return c.URL
	}
	text, err := json.Marshal(c)
	if err != nil {
		return c.URL
	}
	return string(text)
}

// formatLadder returns waits with commas between them.
func formatLadder(ladder []time.Duration) string {
	parts := make([]string, len(ladder))
	for i, d := range ladder {
		parts[i] = units.FormatDuration(d)
	}
	return strings.Join(parts, ", ")
}

func formatDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return units.FormatDuration(d)
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func formatInt(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// laneOf returns the lane of a job without one: the host and port of its URL.
func laneOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
