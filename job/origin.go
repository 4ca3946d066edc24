package job

import (
	"net"
	"net/url"
	"strings"
)

// ChangesOrigin reports whether target has another origin (scheme, host and port) than the stored URL, also if none is
// stored. Secrets stored for one origin are never sent to another. It returns false if target is empty or invalid,
// which validation rejects.
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

// Origin returns a URL's normalized scheme, host and port; empty if it is invalid or has no host.
func Origin(target string) string {
	if u, err := url.Parse(target); err == nil && u.Host != "" {
		return origin(u)
	}
	return ""
}

// origin returns a URL's normalized scheme, host and port.
func origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
