package guard

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseTargets_ParsesNetworksAddressesAndNames(t *testing.T) {
	networks, hosts, err := ParseTargets([]string{
		"10.1.2.3/16", " 192.168.1.7 ", "fd00::/8", "::1", "::ffff:10.0.0.0/104", "shop.internal",
		"*.Shop.Internal.", "LOCALHOST", "a_b-c.1x", "*.xn--mnchen-3ya.example",
	})
	require.NoError(t, err)
	require.Equal(t, []netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("192.168.1.7/32"),
		netip.MustParsePrefix("fd00::/8"),
		netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("::ffff:10.0.0.0/104"),
	}, networks)
	require.Equal(t,
		[]string{"shop.internal", "*.shop.internal", "localhost", "a_b-c.1x", "*.xn--mnchen-3ya.example"}, hosts)

	for _, entry := range []string{
		"", " ", "*", "*.", "*.*.shop", "a.*.b", "shop*", ".shop", "shop..internal", "10.0.0.0/33", "10.1",
		"256.1.1.1", "0x7f.1", "127.0.0.1.",
		"*.10", "shop.internal:80", "http://shop", "shop/8", "fe80::1%eth0", "[::1]", "münchen.example", "a b", "a,b",
		strings.Repeat("a", 64), strings.Repeat("a.", 127) + "aa",
	} {
		_, _, err := ParseTargets([]string{"10.0.0.0/8", entry})
		require.Error(t, err, entry)
	}
	_, _, err = ParseTargets([]string{"a b", "c d"})
	require.ErrorContains(t, err, `"a b" is neither`)
	require.ErrorContains(t, err, `"c d" is neither`)
	_, _, err = ParseTargets(nil)
	require.NoError(t, err)
}

func TestMatching_PatternsMatchNames(t *testing.T) {
	for _, test := range []struct {
		pattern, host string
		matches       bool
	}{
		{"shop.internal", "shop.internal", true},
		{"shop.internal", "a.shop.internal", false},
		{"shop.internal", "shop.internal.example", false},
		{"shop.internal", "myshop.internal", false},
		{"*.shop.internal", "a.shop.internal", true},
		{"*.shop.internal", "a.b.shop.internal", true},
		{"*.shop.internal", "shop.internal", false},
		{"*.shop.internal", ".shop.internal", false},
		{"*.shop.internal", "myshop.internal", false},
		{"shop.internal", "", false},
		{"*.shop.internal", "", false},
	} {
		_, ok := matching([]string{"other.example", test.pattern}, test.host)
		require.Equal(t, test.matches, ok, "%s with %s", test.pattern, test.host)
	}
}

func FuzzParseTargets(f *testing.F) {
	for _, entry := range []string{"10.0.0.0/8", "::1", "*.shop.internal", "shop", "*", "%", "１.2.3.4", "a.0x1"} {
		f.Add(entry)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		networks, hosts, err := ParseTargets([]string{entry})
		if err != nil {
			require.Empty(t, networks)
			require.Empty(t, hosts)
			return
		}
		require.Equal(t, 1, len(networks)+len(hosts), "an entry is one thing")
		for _, host := range hosts {
			require.Equal(t, host, plainHost(host), "it is in the form in which hosts are compared with it")
			name := strings.TrimPrefix(host, "*.")
			_, numeric := readAddrs(name)
			require.False(t, numeric, "what may be an address is no name")
			if name == host {
				require.Error(t, New(Options{DenyHosts: hosts}).CheckURL("http://"+name+"/"), name)
			}
		}
		for _, network := range networks {
			g := New(Options{AllowPrivate: true, DenyTargets: networks})
			require.Error(t, g.CheckAddr("", netip.AddrPortFrom(network.Addr().Unmap(), 80)))
		}
	})
}
