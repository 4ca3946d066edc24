package guard

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// CheckURL refuses a URL that every dial would refuse, without resolving a name: a refused address in any spelling, a
// denied name, a name of loopback, or the name of a metadata service. The error is a *BlockedError, or reports an
// invalid host; of the URL it contains only the host. Every dial is checked again.
func (g *Guard) CheckURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return errors.New("the URL cannot be read")
	}
	port, ok := portOf(u)
	if !ok {
		return errors.New("the URL's port is not valid")
	}
	host := plainHost(u.Hostname())
	if host == "" {
		return errors.New("the URL names no host")
	}
	if err := g.CheckName(host); err != nil {
		return err
	}
	if isMetadataName(host) {
		return &BlockedError{Target: host, Rule: "the name of a cloud's metadata service"}
	}
	if isLoopbackName(host) {
		return g.checkLoopbackName(host, port)
	}
	addrs, numeric := readAddrs(host)
	if numeric && len(addrs) == 0 {
		return errors.New("the URL's host is neither a name nor an address")
	}
	for _, addr := range addrs {
		if err := g.CheckAddr("", netip.AddrPortFrom(addr, port)); err != nil {
			return err
		}
	}
	return nil
}

// portOf returns the port of a URL.
func portOf(u *url.URL) (uint16, bool) {
	if text := u.Port(); text != "" {
		port, err := strconv.ParseUint(text, 10, 16)
		return uint16(port), err == nil
	}
	if u.Scheme == "https" {
		return 443, true
	}
	return 80, true
}

// plainHost returns a host in the form that resolvers use: ASCII for compatibility forms of digits, letters and dots,
// lower case, without a trailing dot.
func plainHost(host string) string {
	host = strings.ReplaceAll(norm.NFKC.String(host), "\u3002", ".")
	return strings.TrimRight(strings.ToLower(host), ".")
}

// NameOf returns a dialled host in the form of plainHost, or an empty string for an address.
func NameOf(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	return plainHost(host)
}

// isLoopbackName reports whether a name means loopback: localhost and names below it (RFC 6761 §6.3), and the names
// that systems put into their hosts file.
func isLoopbackName(host string) bool {
	switch host {
	case "localhost", "localhost.localdomain", "localhost4", "localhost6", "localhost6.localdomain6",
		"ip6-localhost", "ip6-loopback", "loopback":
		return true
	}
	return strings.HasSuffix(host, ".localhost")
}

// isMetadataName reports whether a name is that of a metadata service. Their addresses are refused at the dial, too.
func isMetadataName(host string) bool {
	switch host {
	case "metadata", "metadata.google.internal", "metadata.goog", "metadata.azure.internal", "metadata.azure.com",
		"instance-data", "instance-data.ec2.internal", "metadata.tencentyun.com", "metadata.platformequinix.com",
		"metadata.packet.net", "metadata.oraclecloud.com":
		return true
	}
	return strings.HasSuffix(host, ".metadata.google.internal") || strings.HasSuffix(host, ".metadata.goog")
}

// checkLoopbackName refuses a name when both loopback addresses are refused, or one of them is our own API.
func (g *Guard) checkLoopbackName(host string, port uint16) error {
	v4 := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
	v6 := netip.AddrPortFrom(netip.IPv6Loopback(), port)
	if g.owns(v4) || g.owns(v6) {
		return &BlockedError{Target: host, Rule: ownAPI}
	}
	err4, err6 := g.CheckAddr(host, v4), g.CheckAddr(host, v6)
	if err4 == nil || err6 == nil {
		return nil
	}
	if blocked, ok := errors.AsType[*BlockedError](err4); ok && blocked.Entry != "" {
		return blocked
	}
	return &BlockedError{
		Target: host, Rule: "a name for loopback",
		Option: "--allow-private or --allow-targets " + host,
	}
}

// readAddrs parses a host as an address: IPv6, or IPv4 in each form that a resolver may accept (inet_aton: one to four
// numbers, decimal, octal or hexadecimal; the last fills the remaining bytes). Resolvers differ on leading zeros, so
// such a host yields both addresses. numeric reports that the last label is a number, so that the host cannot be a
// name; without addresses it is invalid.
func readAddrs(host string) (addrs []netip.Addr, numeric bool) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, true
	}
	if strings.Contains(host, ":") {
		return nil, true
	}
	labels := strings.Split(host, ".")
	if !isNumber(labels[len(labels)-1]) {
		return nil, false
	}
	for _, octal := range []bool{true, false} {
		if addr, ok := readIPv4(labels, octal); ok {
			addrs = append(addrs, addr)
		}
	}
	return addrs, true
}

// readIPv4 parses one to four numbers.
func readIPv4(labels []string, octal bool) (netip.Addr, bool) {
	if len(labels) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, label := range labels {
		n, ok := readNumber(label, octal)
		last := i == len(labels)-1
		switch {
		case !ok, !last && n > 255:
			return netip.Addr{}, false
		case !last:
			value |= n << (24 - 8*i)
		case n >= 1<<(32-8*i):
			return netip.Addr{}, false
		default:
			value |= n
		}
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

// isNumber reports whether a label is digits, or 0x and perhaps hexadecimal digits.
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

func readNumber(label string, octal bool) (uint64, bool) {
	if !isNumber(label) {
		return 0, false
	}
	base := 10
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		if hex == "" {
			return 0, true
		}
		label, base = hex, 16
	} else if octal && len(label) > 1 && label[0] == '0' {
		base = 8
	}
	n, err := strconv.ParseUint(label, base, 40)
	return n, err == nil
}
