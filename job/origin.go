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
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), PortOf(u))
}

// PortOf returns the port of a parsed http or https URL: its own, or the default of its scheme.
func PortOf(u *url.URL) string {
	own := u.Port()
	switch {
	case own != "":
		return own
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
