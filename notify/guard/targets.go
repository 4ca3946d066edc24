package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// ParseTargets parses the entries of --allow-targets or --deny-targets: networks (10.1.0.0/16), addresses (10.1.2.3)
// and host names. shop.internal is that host, *.shop.internal all names below it, without itself. Names that are not
// ASCII are written in their ASCII form (xn--…). The error names every invalid entry.
func ParseTargets(entries []string) (networks []netip.Prefix, hosts []string, err error) {
	var errs []error
	for _, entry := range entries {
		text := strings.TrimSpace(entry)
		if network, ok := parseNetwork(text); ok {
			networks = append(networks, network)
		} else if host, ok := parseHost(text); ok {
			hosts = append(hosts, host)
		} else {
			errs = append(errs, fmt.Errorf("%q is neither a network (10.1.0.0/16), an address (10.1.2.3) nor a "+
				"host's name (shop.internal, *.shop.internal)", entry))
		}
	}
	return networks, hosts, errors.Join(errs...)
}

// parseNetwork parses a network, or an address as a network of one.
func parseNetwork(text string) (netip.Prefix, bool) {
	if network, err := netip.ParsePrefix(text); err == nil {
		return network.Masked(), true
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(addr, addr.BitLen()), true
}

// parseHost parses a name or a pattern. Names that a resolver may read as an address are invalid.
func parseHost(text string) (string, bool) {
	pattern := strings.TrimSuffix(strings.ToLower(text), ".")
	name := strings.TrimPrefix(pattern, "*.")
	labels := strings.Split(name, ".")
	if len(name) > 253 || isNumber(labels[len(labels)-1]) {
		return "", false
	}
	return pattern, !slices.ContainsFunc(labels, func(label string) bool { return !isLabel(label) })
}

// isLabel reports whether text is a part of a name: 1 to 63 letters, digits, '-' and '_'.
func isLabel(text string) bool {
	return text != "" && len(text) <= 63 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// matching returns the first pattern that matches a host in the form of plainHost.
func matching(patterns []string, host string) (pattern string, ok bool) {
	for _, p := range patterns {
		if below, ok := strings.CutPrefix(p, "*"); p == host || ok && len(host) > len(below) &&
			strings.HasSuffix(host, below) {
			return p, true
		}
	}
	return "", false
}

// plainNetworks returns networks in the form of plainAddr: a network of IPv4-mapped addresses is an IPv4 network, too.
func plainNetworks(networks []netip.Prefix) []netip.Prefix {
	var plain []netip.Prefix
	for _, p := range networks {
		plain = append(plain, p.Masked())
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			plain = append(plain, netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96).Masked())
		}
	}
	return plain
}

// plainHosts returns patterns in the form of plainHost.
func plainHosts(patterns []string) []string {
	var plain []string
	for _, p := range patterns {
		plain = append(plain, plainHost(p))
	}
	return plain
}
