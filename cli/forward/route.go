package forward

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Route is where the jobs of topics go.
type Route struct {
	Pattern string // a topic, or the beginning of its name and a *
	URL     *url.URL
}

// ParseRoute reads PATTERN=URL.
func ParseRoute(text string) (Route, error) {
	pattern, target, ok := strings.Cut(text, "=")
	if !ok || pattern == "" {
		return Route{}, fmt.Errorf("%q is not PATTERN=URL, such as order.*=http://localhost:3000/orders", text)
	}
	if i := strings.IndexByte(pattern, '*'); i >= 0 && i < len(pattern)-1 {
		return Route{}, fmt.Errorf("%q is neither a topic nor the beginning of one and a *", pattern)
	}
	u, err := ParseURL(target)
	return Route{pattern, u}, err
}

// ParseURL reads the URL of a receiver. Without a scheme it is http, and a port is one of this machine.
func ParseURL(text string) (*url.URL, error) {
	full := text
	host, _, _ := strings.Cut(text, "/")
	switch {
	case strings.Trim(host, "0123456789") == "":
		full = "http://localhost:" + text
	case strings.HasPrefix(text, ":"):
		full = "http://localhost" + text
	case !strings.Contains(text, "://"):
		full = "http://" + text
	}
	u, err := url.Parse(full)
	if err != nil || text == "" || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not a URL such as http://localhost:3000/hooks", text)
	}
	if u.User != nil || u.Fragment != "" {
		return nil, errors.New("a URL must have neither a password nor a fragment")
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

// matches reports whether a topic matches.
func (r *Route) matches(topic string) bool {
	prefix, open := strings.CutSuffix(r.Pattern, "*")
	return topic == r.Pattern || open && strings.HasPrefix(topic, prefix)
}

// isOpen reports whether the route may match several topics.
func (r *Route) isOpen() bool { return strings.HasSuffix(r.Pattern, "*") }

// targetOf returns where the jobs of a topic go: by the first route that matches; nil: nowhere.
func targetOf(routes []Route, topic string) *url.URL {
	for i := range routes {
		if routes[i].matches(topic) {
			return routes[i].URL
		}
	}
	return nil
}

// address returns a URL with the path and the query of a job's own URL after it.
func address(target *url.URL, own string, keepPath bool) string {
	if u, err := url.Parse(own); keepPath && err == nil && own != "" {
		joined := target.JoinPath(u.EscapedPath())
		joined.RawQuery = strings.Trim(target.RawQuery+"&"+u.RawQuery, "&")
		return joined.String()
	}
	return target.String()
}
