package guard

import (
	"fmt"
	"net/netip"
	"slices"
)

// rule refuses a network.
type rule struct {
	prefix netip.Prefix
	name   string // completes "it is …"
	// private rules are lifted by AllowPrivate.
	private bool
	// bits is the length of the shortest prefix that lifts a strict rule; zero: the length of the rule's prefix.
	bits int
	// match narrows the rule to some addresses of its network; nil: all.
	match func(netip.Addr) bool
	// inner returns the IPv4 addresses inside an address, which are checked as well.
	inner func(netip.Addr) []netip.Addr
}

// matches reports whether the rule applies to an address without a zone.
func (r *rule) matches(addr netip.Addr) bool {
	return r.prefix.Contains(addr) && (r.match == nil || r.match(addr))
}

// option returns the option that admits an address despite the rule; host is the name that resolved to it, empty where
// names do not admit.
func (r *rule) option(host string, addr netip.Addr) string {
	option := fmt.Sprintf("--allow-targets %s/%d", addr, addr.BitLen())
	if host != "" {
		option += " or --allow-targets " + host
	}
	if r.private {
		option = "--allow-private or " + option
	}
	return option
}

// strictRules are checked first. Each one that matches must be lifted by an allowed network no wider than the rule's.
// They are the metadata services of clouds, some of them in private or public networks, and networks that a wide
// --allow-targets does not intend.
var strictRules = []rule{
	// Metadata services.
	{prefix: network("169.254.169.254/32"), name: metadata},     // most clouds
	{prefix: network("169.254.170.2/32"), name: metadata},       // container credentials of AWS
	{prefix: network("169.254.170.23/32"), name: metadata},      // pod identities of AWS
	{prefix: network("169.254.42.42/32"), name: metadata},       // Scaleway
	{prefix: network("169.254.0.23/32"), name: metadata},        // Tencent
	{prefix: network("100.100.100.200/32"), name: metadata},     // Alibaba
	{prefix: network("100.96.0.96/32"), name: metadata},         // Volcano Engine
	{prefix: network("192.0.0.192/32"), name: metadata},         // Oracle
	{prefix: network("168.63.129.16/32"), name: metadata},       // Azure's wire server
	{prefix: network("fd00:ec2::254/128"), name: metadata},      // AWS
	{prefix: network("fd00:ec2::23/128"), name: metadata},       // pod identities of AWS
	{prefix: network("fd00:ec2::/32"), name: cloudServices},     // AWS: names, time
	{prefix: network("fd20:ce::254/128"), name: metadata},       // Google
	{prefix: network("fd00:c1::a9fe:a9fe/128"), name: metadata}, // Oracle
	{prefix: network("fd00:42::42/128"), name: metadata},        // Scaleway
	{prefix: network("fd00:a9fe:a9fe::1/128"), name: metadata},  // Akamai
	{prefix: network("fd00:100::100:200/128"), name: metadata},  // Alibaba
	{prefix: network("fe80::a9fe:a9fe/128"), name: metadata},    // OpenStack, Hetzner
	{prefix: network("fc00::/7"), name: metadata, match: spellsMetadata, bits: 128},

	// Networks.
	{prefix: network("0.0.0.0/8"), name: "an address of \"this network\" (RFC 791)"},
	{prefix: network("169.254.0.0/16"), name: "a link-local address (RFC 3927)"},
	{prefix: network("224.0.0.0/4"), name: "a multicast address (RFC 5771)"},
	{prefix: network("255.255.255.255/32"), name: "the broadcast address (RFC 919)"},
	{prefix: network("::/128"), name: "the unspecified address (RFC 4291)"},
	{prefix: network("fe80::/10"), name: "a link-local address (RFC 4291)"},
	{prefix: network("ff00::/8"), name: "a multicast address (RFC 4291)"},
}

// rules are checked next, in order. The first that matches decides; an address without a match is public. They follow
// IANA's registries of special-purpose addresses (RFC 6890 and its successors). IPv4 addresses inside an address are
// checked for each rule with inner.
var rules = []rule{
	// IPv4.
	{prefix: network("127.0.0.0/8"), name: loopback, private: true},
	{prefix: network("10.0.0.0/8"), name: private, private: true},
	{prefix: network("172.16.0.0/12"), name: private, private: true},
	{prefix: network("192.168.0.0/16"), name: private, private: true},
	{prefix: network("100.64.0.0/10"), name: "an address shared behind a carrier's NAT (RFC 6598)"},
	{prefix: network("192.0.0.0/24"), name: "reserved for protocols (RFC 6890)"},
	{prefix: network("192.0.2.0/24"), name: "reserved for documentation (RFC 5737)"},
	{prefix: network("192.31.196.0/24"), name: "an AS112 address (RFC 7535)"},
	{prefix: network("192.52.193.0/24"), name: "an address of automatic tunnels (RFC 7450)"},
	{prefix: network("192.88.99.0/24"), name: "a 6to4 relay (RFC 7526)"},
	{prefix: network("192.175.48.0/24"), name: "an AS112 address (RFC 7534)"},
	{prefix: network("198.18.0.0/15"), name: "reserved for benchmarks (RFC 2544)"},
	{prefix: network("198.51.100.0/24"), name: "reserved for documentation (RFC 5737)"},
	{prefix: network("203.0.113.0/24"), name: "reserved for documentation (RFC 5737)"},
	{prefix: network("240.0.0.0/4"), name: "reserved (RFC 1112)"},

	// IPv6 that contains IPv4.
	{prefix: network("::1/128"), name: loopback, private: true},
	{prefix: network("::ffff:0:0/96"), name: "an IPv4 address in IPv6 form (RFC 4291)", inner: at(12)},
	{prefix: network("::ffff:0:0:0/96"), name: "a translated IPv4 address (RFC 2765)", inner: at(12)},
	{prefix: network("::/96"), name: "an IPv4 address in IPv6 form (RFC 4291)", match: isCompatible, inner: at(12)},
	{prefix: network("64:ff9b::/96"), name: "an IPv4 address behind NAT64 (RFC 6052)", inner: at(12)},
	{prefix: network("64:ff9b:1::/48"), name: "an IPv4 address behind NAT64 (RFC 8215)", inner: localNAT64},
	{prefix: network("2002::/16"), name: "a 6to4 address (RFC 3056)", inner: at(2)},
	{prefix: network("2001::/32"), name: "a Teredo address (RFC 4380)", inner: teredo},
	{prefix: network("::/0"), name: "an ISATAP address (RFC 5214)", match: isISATAP, inner: at(12)},

	// IPv6.
	{prefix: network("fec0::/10"), name: "a site-local address (RFC 3879)"},
	{prefix: network("fc00::/7"), name: "a unique local address (RFC 4193)", private: true},
	{prefix: network("100::/64"), name: "an address whose packets are dropped (RFC 6666)"},
	{prefix: network("2001::/23"), name: "reserved for protocols (RFC 2928)"},
	{prefix: network("2001:db8::/32"), name: "reserved for documentation (RFC 3849)"},
	{prefix: network("2620:4f:8000::/48"), name: "an AS112 address (RFC 7534)"},
	{prefix: network("3fff::/20"), name: "reserved for documentation (RFC 9637)"},
	{prefix: network("5f00::/16"), name: "an address of segment routing (RFC 9602)"},
	{prefix: network("::/0"), name: "outside of the addresses in use (RFC 4291)", match: notGlobal},
}

// Names of several rules.
const (
	metadata      = "the address of a cloud's metadata service"
	cloudServices = "an address of a cloud's own services"
	loopback      = "a loopback address (RFC 1122, RFC 4291)"
	private       = "a private address (RFC 1918)"
)

// network parses a rule's network.
func network(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// globalUnicast is the IPv6 network that IANA assigns from.
var globalUnicast = network("2000::/3")

func notGlobal(addr netip.Addr) bool { return !globalUnicast.Contains(addr) }

// isISATAP reports whether the interface identifier is 0000:5efe or 0200:5efe and an IPv4 address.
func isISATAP(addr netip.Addr) bool {
	b := addr.As16()
	return b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// at returns the IPv4 address at a byte offset.
func at(i int) func(netip.Addr) []netip.Addr {
	return func(addr netip.Addr) []netip.Addr {
		b := addr.As16()
		return []netip.Addr{netip.AddrFrom4([4]byte(b[i : i+4]))}
	}
}

// teredo returns the server's address and the client's, which is stored inverted.
func teredo(addr netip.Addr) []netip.Addr {
	b := addr.As16()
	return []netip.Addr{
		netip.AddrFrom4([4]byte(b[4:8])),
		netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}),
	}
}

// localNAT64 returns the address in each layout that RFC 6052 (section 2.2) defines for a prefix within 64:ff9b:1::/48:
// 48, 56, 64 and 96 bits, without the byte after the 64th bit. The layout of a site is unknown, and translators ignore
// the bytes after the address. So all are returned, except addresses in 0.0.0.0/8, which come from the zeros of another
// layout, unless there are no others.
func localNAT64(addr netip.Addr) []netip.Addr {
	b := addr.As16()
	all := []netip.Addr{
		netip.AddrFrom4([4]byte{b[6], b[7], b[9], b[10]}),
		netip.AddrFrom4([4]byte{b[7], b[9], b[10], b[11]}),
		netip.AddrFrom4([4]byte{b[9], b[10], b[11], b[12]}),
		netip.AddrFrom4([4]byte(b[12:16])),
	}
	found := slices.DeleteFunc(slices.Clone(all), thisNetwork.Contains)
	if len(found) == 0 {
		return all
	}
	return found
}

var thisNetwork = network("0.0.0.0/8")

// isCompatible reports whether an address is IPv4-compatible: not unspecified and not loopback.
func isCompatible(addr netip.Addr) bool { return !addr.IsUnspecified() && !addr.IsLoopback() }

// spellsMetadata reports whether an address contains 169.254.169.254 in two adjacent groups, as the metadata services
// of some clouds do.
func spellsMetadata(addr netip.Addr) bool {
	b := addr.As16()
	for i := 2; i <= 12; i += 2 {
		if [4]byte(b[i:i+4]) == [4]byte{169, 254, 169, 254} {
			return true
		}
	}
	return false
}
