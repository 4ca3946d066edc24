package job

import (
	"net"
	"net/url"
	"strings"
)

// ChangesOrigin reports whether a URL leads to another origin (scheme, host and port) than the stored one, or is set where
// none was: what was stored for that one is not sent there unless it is said again. One that cannot be read is refused
// for its own sake.
func ChangesOrigin(stored, target string) bool {
	if target == "" || target == stored {
		return false
	}
	to, err := url.Parse(target)
	if err != nil {
		return false
	}
	from, err := url.Parse(stored)
	return err != nil || origin(from) != origin(to)
}

// Origin is a URL's scheme, host and port, in one spelling; empty where it has none, or cannot be read.
func Origin(target string) string {
	if u, err := url.Parse(target); err == nil && u.Host != "" {
		return origin(u)
	}
	return ""
}

// origin is a URL's scheme, host and port, in one spelling.
func origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
