package guard

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"code.dny.dev/ssrf"
	"github.com/stretchr/testify/require"
)

// options of guards in tables.
var (
	public    = Options{}
	privately = Options{AllowPrivate: true}
)

func targets(prefixes ...string) Options {
	var o Options
	for _, p := range prefixes {
		o.AllowTargets = append(o.AllowTargets, netip.MustParsePrefix(p))
	}
	return o
}

func TestGuard_ChecksAddresses(t *testing.T) {
	tests := []struct {
		addr             string
		public, allowing bool // admitted by default, and with AllowPrivate
	}{
		{"8.8.8.8", true, true},
		{"1.1.1.1", true, true},
		{"172.15.255.255", true, true},
		{"172.32.0.0", true, true},
		{"100.63.255.255", true, true},
		{"2606:4700::1111", true, true},

		{"127.0.0.1", false, true},
		{"127.255.255.254", false, true},
		{"10.0.0.0", false, true},
		{"10.255.255.255", false, true},
		{"172.16.0.1", false, true},
		{"172.31.255.255", false, true},
		{"192.168.1.1", false, true},
		{"::1", false, true},
		{"fc00::1", false, true},
		{"fdff::1", false, true},

		{"169.254.169.254", false, false},
		{"169.254.170.2", false, false},
		{"169.254.0.1", false, false},
		{"100.100.100.200", false, false},
		{"168.63.129.16", false, false},
		{"fd00:ec2::254", false, false},
		{"fd00:ec2::23", false, false},
		{"fd20:ce::254", false, false},
		{"fe80::1", false, false},
		{"fe80::5efe:8.8.8.8", false, false},
		{"fe80::1%eth0", false, false},
		{"febf::1", false, false},
		{"fec0::1", false, false},
		{"0.0.0.0", false, false},
		{"0.1.2.3", false, false},
		{"::", false, false},
		{"100.64.0.1", false, false},
		{"100.127.255.255", false, false},
		{"192.0.0.1", false, false},
		{"192.0.0.192", false, false},
		{"192.0.2.1", false, false},
		{"192.31.196.1", false, false},
		{"192.52.193.1", false, false},
		{"192.88.99.1", false, false},
		{"192.175.48.1", false, false},
		{"198.18.0.1", false, false},
		{"198.19.255.255", false, false},
		{"198.51.100.1", false, false},
		{"203.0.113.1", false, false},
		{"224.0.0.1", false, false},
		{"239.255.255.255", false, false},
		{"240.0.0.1", false, false},
		{"255.255.255.255", false, false},

		{"::ffff:8.8.8.8", false, false},
		{"::ffff:127.0.0.1", false, false},
		{"::ffff:0:127.0.0.1", false, false},
		{"::127.0.0.1", false, false},
		{"::8.8.8.8", false, false},
		{"64:ff9b::8.8.8.8", false, false},
		{"64:ff9b::10.0.0.1", false, false},
		{"64:ff9b:1::10.0.0.1", false, false},
		{"2002:7f00:1::", false, false},
		{"2002:808:808::1", false, false},
		{"2001:0:808:808::1", false, false},
		{"2606:4700::5efe:10.0.0.1", false, false},
		{"2606:4700::200:5efe:10.0.0.1", false, false},
		{"fd00::5efe:169.254.169.254", false, false},

		{"ff02::1", false, false},
		{"100::1", false, false},
		{"2001:20::1", false, false},
		{"2001:db8::1", false, false},
		{"2620:4f:8000::1", false, false},
		{"3fff::1", false, false},
		{"5f00::1", false, false},
		{"4000::1", false, false},
		{"1000::1", false, false},
	}
	closed, open := New(public), New(privately)
	for _, test := range tests {
		target := netip.AddrPortFrom(netip.MustParseAddr(test.addr), 80)
		requireAdmits(t, test.public, closed.CheckAddr("", target), test.addr)
		requireAdmits(t, test.allowing, open.CheckAddr("", target), test.addr+" with AllowPrivate")
	}
}

// Metadata services and link-local addresses are admitted only by an option that names them.
func TestGuard_AdmitsStrictNetworksOnlyByTheirOwnNames(t *testing.T) {
	tests := []struct{ addr, reason string }{
		{"169.254.169.254", metadata}, // nearly all
		{"169.254.170.2", metadata},   // AWS: containers
		{"169.254.170.23", metadata},  // AWS: pods
		{"fd00:ec2::254", metadata},
		{"fd00:ec2::23", metadata},
		{"fd00:ec2::253", cloudServices}, // AWS: names
		{"fd00:ec2::123", cloudServices}, // AWS: time
		{"fd20:ce::254", metadata},       // Google
		{"168.63.129.16", metadata},      // Azure
		{"100.100.100.200", metadata},    // Alibaba
		{"fd00:100::100:200", metadata},
		{"192.0.0.192", metadata}, // Oracle
		{"fd00:c1::a9fe:a9fe", metadata},
		{"169.254.42.42", metadata}, // Scaleway
		{"fd00:42::42", metadata},
		{"169.254.0.23", metadata},      // Tencent
		{"100.96.0.96", metadata},       // Volcano Engine
		{"fd00:a9fe:a9fe::1", metadata}, // Akamai
		{"fe80::a9fe:a9fe", metadata},   // OpenStack, Hetzner
		{"fe80::a9fe:a9fe%eth0", metadata},
		{"fd12:3456::a9fe:a9fe", metadata}, // an unknown cloud
		{"fd12::a9fe:a9fe:0:0:1", metadata},
		{"fcff:a9fe:a9fe::", metadata},

		{"0.1.2.3", `an address of "this network" (RFC 791)`},
		{"169.254.1.1", "a link-local address (RFC 3927)"},
		{"224.0.0.251", "a multicast address (RFC 5771)"},
		{"255.255.255.255", "the broadcast address (RFC 919)"},
		{"::", "the unspecified address (RFC 4291)"},
		{"fe80::1", "a link-local address (RFC 4291)"},
		{"fe80::5efe:8.8.8.8", "a link-local address (RFC 4291)"}, // ISATAP
		{"fe80::200:5efe:8.8.8.8", "a link-local address (RFC 4291)"},
		{"febf::5efe:10.0.0.1", "a link-local address (RFC 4291)"},
		{"ff02::fb", "a multicast address (RFC 4291)"},
		{"ff05::5efe:8.8.8.8", "a multicast address (RFC 4291)"},
	}
	everything := targets("0.0.0.0/0", "::/0", "0.0.0.0/1", "128.0.0.0/1", "8000::/1", "fc00::/7",
		"fd00::/8", "100.64.0.0/10")
	everything.AllowPrivate, everything.AllowHosts = true, []string{"shop.internal"}
	for _, test := range tests {
		addr := netip.MustParseAddr(test.addr)
		err := New(everything).CheckAddr("shop.internal", netip.AddrPortFrom(addr, 80))
		blocked, ok := errors.AsType[*BlockedError](err)
		require.True(t, ok, "%s must be refused, got %v", addr, err)
		require.Equal(t, test.reason, blocked.Rule, test.addr)
		named := netip.PrefixFrom(addr.WithZone(""), addr.BitLen())
		require.Equal(t, "--allow-targets "+named.String(), blocked.Option, "a host's name allows no address")

		o := everything
		o.AllowTargets = append([]netip.Prefix{named}, o.AllowTargets...)
		requireAdmits(t, true, New(o).CheckAddr("", netip.AddrPortFrom(addr, 80)), test.addr+" named itself")
	}
}

func requireAdmits(t *testing.T, admitted bool, err error, what string) {
	t.Helper()
	if admitted {
		require.NoError(t, err, what)
		return
	}
	_, ok := errors.AsType[*BlockedError](err)
	require.True(t, ok, "%s must be refused, got %v", what, err)
}

func TestGuard_AdmitsTargetsExactly(t *testing.T) {
	tests := []struct {
		targets  Options
		addr     string
		admitted bool
	}{
		{targets("10.1.0.0/16"), "10.1.2.3", true},
		{targets("10.1.0.0/16"), "10.2.0.1", false},
		{targets("10.1.0.0/16"), "127.0.0.1", false},
		{targets("10.1.2.3/16"), "10.1.9.9", true},
		{targets("100.64.0.0/10"), "100.64.0.1", true},
		{targets("100.64.0.0/10"), "100.100.100.200", false},
		{targets("100.100.100.200/32"), "100.100.100.200", true},
		{targets("0.0.0.0/0"), "10.0.0.1", true},
		{targets("0.0.0.0/0"), "169.254.169.254", false},
		{targets("0.0.0.0/0"), "169.254.1.1", false},
		{targets("0.0.0.0/0"), "0.0.0.0", false},
		{targets("0.0.0.0/0"), "224.0.0.1", false},
		{targets("169.254.0.0/16"), "169.254.1.1", true},
		{targets("169.254.0.0/16"), "169.254.169.254", false},
		{targets("169.254.169.254/32"), "169.254.169.254", true},
		{targets("::ffff:10.1.0.0/112"), "10.1.2.3", true},
		{targets("fd00:ec2::/32"), "fd00:ec2::254", false},
		{targets("fd00:ec2::/32"), "fd00:ec2::1", true},

		// The IPv4 address inside must be admitted, too.
		{targets("64:ff9b::/96"), "64:ff9b::8.8.8.8", true},
		{targets("64:ff9b::/96"), "64:ff9b::10.0.0.1", false},
		{targets("64:ff9b::/96"), "64:ff9b::169.254.169.254", false},
		{targets("64:ff9b::/96", "10.0.0.0/8"), "64:ff9b::10.0.0.1", true},
		{targets("64:ff9b:1::/48"), "64:ff9b:1::8.8.8.8", true},
		{targets("64:ff9b:1::/48"), "64:ff9b:1::10.0.0.1", false},
		{targets("64:ff9b:1::/48"), "64:ff9b:1:0a00:0:0100::", false},
		{targets("64:ff9b:1::/48"), "64:ff9b:1:0808:0008:0800::", true},
		{targets("64:ff9b:1::/48"), "64:ff9b:1::", false},
		{targets("2002::/16"), "2002:808:808::1", true},
		{targets("2002::/16"), "2002:7f00:1::", false},
		{targets("2001::/32"), "2001:0:808:808::f7f7:f7f7", true},
		{targets("2001::/32"), "2001:0:808:808::80ff:fffe", false}, // 127.0.0.1 inverted
		{targets("2001::/32"), "2001:0:a00:1::f7f7:f7f7", false},
		{targets("::ffff:0:0/96"), "::ffff:8.8.8.8", true},
		{targets("::/0"), "::ffff:127.0.0.1", false},
		{targets("::/0"), "2606:4700::5efe:10.0.0.1", false},
		{targets("::/0"), "2606:4700::5efe:8.8.8.8", true},
		{targets("2002::/16"), "2002:808:808::5efe:10.0.0.1", false}, // both of them
		{targets("2002::/16"), "2002:808:808::5efe:8.8.8.8", true},
		{targets("2002::/16"), "2002:a9fe:a9fe::5efe:8.8.8.8", false},
		{targets("::/96"), "::8.8.8.8", true},
		{targets("::/96"), "::169.254.169.254", false},
		{targets("::ffff:0:0:0/96"), "::ffff:0:8.8.8.8", true},
		{targets("::ffff:0:0:0/96"), "::ffff:0:169.254.169.254", false},
		{targets("::1/128"), "::1", true},
		{targets("::/128"), "::", true},
		{targets("ff00::/8"), "ff02::1", true},
		{targets("ff00::/7"), "ff02::1", false},

		// Each layout of RFC 6052, with any bytes after the address.
		{targets("64:ff9b:1::/48"), "64:ff9b:1:a9fe:a9:fe00::", false},                        // /48
		{targets("64:ff9b:1::/48"), "64:ff9b:1:a9fe:a9:fe08:808:808", false},                  // /48
		{targets("64:ff9b:1::/48"), "64:ff9b:1:12a9:fe:a9fe::", false},                        // /56
		{targets("64:ff9b:1::/48"), "64:ff9b:1:12a9:fe:a9fe:808:808", false},                  // /56
		{targets("64:ff9b:1::/48"), "64:ff9b:1:1234:a9:fea9:fe00:0", false},                   // /64
		{targets("64:ff9b:1::/48"), "64:ff9b:1:1234:a9:fea9:fe08:808", false},                 // /64
		{targets("64:ff9b:1::/48"), "64:ff9b:1:1234::169.254.169.254", false},                 // /96
		{targets("64:ff9b:1::/48"), "64:ff9b:1:1212:12:1212:169.254.169.254", false},          // /96
		{targets("64:ff9b:1::/48"), "64:ff9b:1:1208:8:808::", true},                           // /56
		{targets("64:ff9b:1::/48"), "64:ff9b:1:1234:8:808:800::", true},                       // /64
		{targets("64:ff9b:1::/48"), "64:ff9b:1:1234::8.8.8.8", true},                          // /96
		{targets("64:ff9b:1::/48"), "64:ff9b:1:1234:7f:0:100:0", false},                       // /64
		{targets("64:ff9b:1::/48", "127.0.0.0/8"), "64:ff9b:1:1234:7f:0:100:0", true},         // /64
		{targets("64:ff9b:1::/48", "0.0.0.0/0"), "64:ff9b:1:1234:a9:fea9:fe00:0", false},      // /64
		{targets("64:ff9b:1::/48", "169.254.169.254/32"), "64:ff9b:1::169.254.169.254", true}, // /96
	}
	for _, test := range tests {
		err := New(test.targets).CheckAddr("", netip.AddrPortFrom(netip.MustParseAddr(test.addr), 80))
		requireAdmits(t, test.admitted, err, test.addr)
	}
}

func TestGuard_DenyOverridesEveryOption(t *testing.T) {
	deny := func(denied string, allowed ...string) Options {
		o := targets(allowed...)
		o.AllowPrivate = true
		o.DenyTargets = []netip.Prefix{netip.MustParsePrefix(denied)}
		return o
	}
	tests := []struct {
		options  Options
		addr     string
		admitted bool
	}{
		{deny("8.8.8.0/24"), "8.8.8.8", false},
		{deny("8.8.8.0/24"), "8.8.9.8", true},
		{deny("10.1.0.0/16"), "10.1.2.3", false},
		{deny("10.1.0.0/16"), "10.2.2.3", true},
		{deny("10.1.0.0/16", "10.1.2.3/32"), "10.1.2.3", false},
		{deny("10.1.2.3/32", "10.0.0.0/8"), "10.1.2.3", false},
		{deny("10.1.2.3/32", "10.0.0.0/8"), "10.1.2.4", true},
		{deny("127.0.0.0/8"), "127.0.0.1", false},
		{deny("127.0.0.0/8"), "::1", true},
		{deny("2606:4700::/32"), "2606:4700::1111", false},
		{deny("0.0.0.0/0"), "2606:4700::1111", true},
		{deny("0.0.0.0/0"), "1.1.1.1", false},

		// In every form of the address.
		{deny("8.8.8.0/24", "::ffff:0:0/96"), "::ffff:8.8.8.8", false},
		{deny("8.8.8.0/24", "64:ff9b::/96"), "64:ff9b::8.8.8.8", false},
		{deny("8.8.8.0/24", "64:ff9b:1::/48"), "64:ff9b:1::8.8.8.8", false},
		{deny("8.8.8.0/24", "2002::/16"), "2002:808:808::1", false},
		{deny("8.8.8.0/24", "2001::/32"), "2001:0:101:101::f7f7:f7f7", false},
		{deny("8.8.8.0/24", "::/0"), "2606:4700::5efe:8.8.8.8", false},
		{deny("::ffff:8.8.8.0/120"), "8.8.8.8", false},
		{deny("64:ff9b::/96", "64:ff9b::/96"), "64:ff9b::8.8.8.8", false},
		{deny("8.8.9.0/24", "64:ff9b::/96"), "64:ff9b::8.8.8.8", true},
	}
	for _, test := range tests {
		g := New(test.options)
		addr := netip.MustParseAddr(test.addr)
		requireAdmits(t, test.admitted, g.CheckAddr("", netip.AddrPortFrom(addr, 80)), test.addr)
		requireAdmits(t, test.admitted, g.CheckURL("http://"+netip.AddrPortFrom(addr, 80).String()), test.addr)
	}
}

// An allowed name admits the addresses that it resolves to, within limits.
func TestGuard_AllowedNameAdmitsItsAddresses(t *testing.T) {
	tests := []struct {
		addr     string
		admitted bool
	}{
		{"8.8.8.8", true},
		{"10.0.0.5", true},
		{"127.0.0.1", true},
		{"::1", true},
		{"fd00::5", true},
		{"100.64.0.1", true},
		{"198.18.0.1", true},
		{"192.0.2.1", true},
		{"64:ff9b::10.0.0.5", true},

		{"169.254.169.254", false},
		{"169.254.1.1", false},
		{"100.100.100.200", false},
		{"168.63.129.16", false},
		{"fd00:ec2::254", false},
		{"fe80::1", false},
		{"0.0.0.0", false},
		{"::", false},
		{"224.0.0.1", false},
		{"ff02::1", false},
		{"255.255.255.255", false},
		{"64:ff9b::169.254.169.254", false},
		{"127.0.0.1:8080", false}, // our own API
		{"10.66.0.1", false},      // denied
	}
	g := New(Options{
		AllowHosts:  []string{"shop.internal", "*.Shop.Internal."},
		DenyTargets: []netip.Prefix{netip.MustParsePrefix("10.66.0.0/16")},
		OwnAddrs:    []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8080")},
	})
	for _, test := range tests {
		target, err := netip.ParseAddrPort(test.addr)
		if err != nil {
			target = netip.AddrPortFrom(netip.MustParseAddr(test.addr), 80)
		}
		for _, host := range []string{"shop.internal", "a.shop.internal"} {
			requireAdmits(t, test.admitted, g.CheckAddr(host, target), host+" at "+test.addr)
		}
		if target.Addr() != netip.MustParseAddr("8.8.8.8") {
			requireAdmits(t, false, g.CheckAddr("other.internal", target), "another name at "+test.addr)
			requireAdmits(t, false, g.CheckAddr("", target), "no name at "+test.addr)
		}
	}
}

func TestBlockedError_NamesRuleAndOption(t *testing.T) {
	g := New(Options{
		DenyTargets: []netip.Prefix{netip.MustParsePrefix("10.66.1.2/16")},
		DenyHosts:   []string{"*.evil.example"},
		OwnAddrs:    []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8080")},
	})
	tests := map[string]string{
		"http://10.66.0.1/":     "10.66.0.1 may not be called: --deny-targets 10.66.0.0/16 denies it",
		"http://a.EVIL.example": "a.evil.example may not be called: --deny-targets *.evil.example denies it",
		"http://10.0.0.5/": "10.0.0.5 may not be called: it is a private address (RFC 1918), which only " +
			"--allow-private or --allow-targets 10.0.0.5/32 admits",
		"http://169.254.1.2/": "169.254.1.2 may not be called: it is a link-local address (RFC 3927), which only " +
			"--allow-targets 169.254.1.2/32 admits",
		"http://127.0.0.1:8080/": "127.0.0.1:8080 may not be called: it is this service's own API, which nothing " +
			"admits",
		"http://localhost/x?y": "localhost may not be called: it is a name for loopback, which only --allow-private " +
			"or --allow-targets localhost admits",
	}
	for url, text := range tests {
		require.EqualError(t, g.CheckURL(url), text)
	}
	require.EqualError(t, g.CheckDial("shop.internal", "tcp4", "10.0.0.5:80"),
		"10.0.0.5 may not be called: it is a private address (RFC 1918), which only --allow-private or "+
			"--allow-targets 10.0.0.5/32 or --allow-targets shop.internal admits")
	require.EqualError(t, g.CheckDial("shop.internal", "tcp4", "169.254.169.254:80"),
		"169.254.169.254 may not be called: it is the address of a cloud's metadata service, which only "+
			"--allow-targets 169.254.169.254/32 admits")
}

func TestGuard_NeverAdmitsItsAPI(t *testing.T) {
	interfaces := func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.ParseIP("10.1.2.3"), Mask: net.CIDRMask(8, 32)}}, nil
	}
	tests := []struct {
		own, target string
		admitted    bool
	}{
		{"127.0.0.1:8080", "127.0.0.1:8080", false},
		{"127.0.0.1:8080", "[::ffff:127.0.0.1]:8080", false},
		{"127.0.0.1:8080", "0.0.0.0:8080", false},
		{"127.0.0.1:8080", "127.0.0.1:8081", true},
		{"127.0.0.1:8080", "127.0.0.2:8080", true},
		{"[::]:8080", "127.0.0.2:8080", false},
		{"[::]:8080", "[::1]:8080", false},
		{"[::]:8080", "10.1.2.3:8080", false},
		{"0.0.0.0:8080", "10.1.2.3:8080", false},
		{"0.0.0.0:8080", "10.1.2.4:8080", true},
		{"0.0.0.0:8080", "10.1.2.3:8081", true},
		{"10.1.2.3:8080", "[64:ff9b::10.1.2.3]:8080", false},
	}
	for _, test := range tests {
		o := targets("0.0.0.0/0", "64:ff9b::/96", "0.0.0.0/8", "::/0")
		o.AllowPrivate = true
		g := New(o)
		g.localAddrs = interfaces
		g.Own(netip.MustParseAddrPort(test.own))
		requireAdmits(t, test.admitted, g.CheckAddr("", netip.MustParseAddrPort(test.target)), test.own+" "+test.target)
	}

	blind := New(privately)
	blind.localAddrs = func() ([]net.Addr, error) { return nil, errors.New("no permission") }
	blind.Own(netip.MustParseAddrPort("0.0.0.0:8080"))
	requireAdmits(t, false, blind.CheckAddr("", netip.MustParseAddrPort("10.9.9.9:8080")), "unknown addresses")
}

func TestCheckDial_ChecksTheDialledAddress(t *testing.T) {
	g := New(public)
	requireAdmits(t, true, g.CheckDial("", "tcp4", "8.8.8.8:80"), "public")
	requireAdmits(t, false, g.CheckDial("", "tcp4", "10.0.0.1:80"), "private")
	requireAdmits(t, false, g.CheckDial("", "tcp6", "[fe80::1%lo]:80"), "link-local")
	requireAdmits(t, false, g.CheckDial("", "udp4", "8.8.8.8:80"), "udp")
	requireAdmits(t, false, g.CheckDial("", "unix", "/run/x.sock"), "unix")
	requireAdmits(t, true, g.CheckDial("", "tcp6", "[::ffff:8.8.8.8]:80"), "an IPv4 socket in IPv6 notation")
	requireAdmits(t, false, g.CheckDial("", "tcp6", "[::ffff:10.0.0.1]:80"), "an IPv4 socket in IPv6 notation")
}

// The ssrf package does not distinguish AllowPrivate from AllowTargets, knows no metadata addresses outside of
// special-purpose networks and gives no reasons. The guard must refuse what it refuses.
func TestGuard_RefusesAddressesOfAnIndependentList(t *testing.T) {
	g, other := New(public), ssrf.New(ssrf.WithAnyPort())
	for _, p := range append(append([]netip.Prefix{}, ssrf.IPv4DeniedPrefixes...), ssrf.IPv6DeniedPrefixes...) {
		for _, addr := range []netip.Addr{p.Addr(), p.Addr().Next(), last(p)} {
			require.Error(t, other.SafeAddr(addr))
			requireAdmits(t, false, g.CheckAddr("", netip.AddrPortFrom(addr, 443)), addr.String())
		}
	}
}

// last returns the highest address of a network.
func last(p netip.Prefix) netip.Addr {
	raw := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 1 << (7 - bit%8)
	}
	addr, _ := netip.AddrFromSlice(raw)
	return addr
}
