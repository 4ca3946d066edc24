package guard

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckURL_RefusesAddressesInAnySpelling(t *testing.T) {
	g := New(public)
	for _, host := range []string{
		"127.0.0.1", "127.0.0.1.", "127.0.0.1..", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1",
		"0X7F.0.0.1", "0177.0.0.1", "017700000001", "127.0x0.0.1", "0x7f.0x.0x.0x1", "00000177.1",
		"127.0.0.1:443", "127.0.0.1:65535",
		"１２７.0.0.1", "127。0。0。1", "①②⑦.0.0.1", "ｌocalhost",
		"010.0.0.1",  // 8.0.0.1 to some, 10.0.0.1 to others
		"0012.0.0.1", // 10.0.0.1 to some, 12.0.0.1 to others
		"192.168.257", "10.1", "0", "0.0.0.0", "0xa9fea9fe", "2852039166", "169.254.43518",
		"[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]",
		"[2002:7f00:1::]", "[fe80::1%25eth0]", "[fd00:ec2::254]", "[::]",
		"localhost", "LOCALHOST", "localhost.", "a.localhost", "a.b.LocalHost.",
		"localhost.localdomain", "ip6-localhost", "metadata.google.internal", "Metadata.Google.Internal.", "metadata",
		"instance-data.ec2.internal", "metadata.goog",
	} {
		requireAdmits(t, false, g.CheckURL("http://"+host+"/path?query"), host)
	}
}

func TestCheckURL_LeavesNamesToTheDial(t *testing.T) {
	g := New(public)
	for _, host := range []string{
		"shop.example", "shop.example.", "8.8.8.8", "134744072", "8.8.2056", "0x08080808", "[2606:4700::1111]:8443",
		"10.example", "127.0.0.1.example", "0x7f.example", "localhost.example", "notlocalhost", "metadata.example",
		"xn--mnchen-3ya.example", "münchen.example", "a-1", "1a",
	} {
		require.NoError(t, g.CheckURL("https://"+host+"/"), host)
	}
}

func TestCheckURL_RefusesMalformedHosts(t *testing.T) {
	g := New(privately)
	for _, url := range []string{
		"http://256.256.256.256/", "http://1.2.3.4.5/", "http://example.1/", "http://0x100000000/",
		"http://127.0.0.09x.1.1.1/", "http://1.2.3.256/", "http://99999999999999999999/", "http://./", "http:///x",
		"http://host:99999/", "http://[::1", "::", "http://%zz/",
	} {
		require.Error(t, g.CheckURL(url), url)
	}
	err := g.CheckURL("http://user:pa/ss@host/?secret")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "pa")
	require.NotContains(t, err.Error(), "secret")
}

func TestCheckURL_FollowsTheOptions(t *testing.T) {
	own := netip.MustParseAddrPort("127.0.0.1:8080")
	g := New(Options{AllowPrivate: true, OwnAddrs: []netip.AddrPort{own}})
	for _, url := range []string{
		"http://localhost/", "http://a.localhost:81/", "http://127.0.0.1:8081/", "https://10.0.0.1/",
		"http://[::1]:81", "http://0x7f.1/",
	} {
		require.NoError(t, g.CheckURL(url), url)
	}
	for _, url := range []string{
		"http://localhost:8080/", "http://127.0.0.1:8080/", "http://127.1:8080/", "http://0.0.0.0:8080/",
		"http://169.254.169.254/",
		"http://metadata.google.internal/", "http://x.localhost:8080/", "http://[::ffff:127.0.0.1]:8080",
	} {
		requireAdmits(t, false, g.CheckURL(url), url)
	}
	g.Own(netip.MustParseAddrPort("[::]:80"))
	requireAdmits(t, false, g.CheckURL("http://localhost/"), "the scheme's port")
	require.NoError(t, g.CheckURL("https://localhost/"))

	only := New(targets("127.0.0.1/32"))
	require.NoError(t, only.CheckURL("http://localhost/"))
	requireAdmits(t, false, only.CheckURL("http://[::1]/"), "::1")
}

func TestCheckURL_KnowsDeniedAndAllowedNames(t *testing.T) {
	g := New(Options{
		AllowHosts: []string{"localhost", "metadata.google.internal"},
		DenyHosts:  []string{"shop.example", "*.evil.example", "a.localhost"},
	})
	for _, url := range []string{
		"http://shop.example/", "https://SHOP.example.:8443/x", "http://ｓhop.example/", "http://a.evil.example",
		"http://a.b.evil.example",
		"http://a.localhost/", "http://b.localhost/", "http://127.0.0.1/", "http://metadata.google.internal/",
	} {
		requireAdmits(t, false, g.CheckURL(url), url)
	}
	for _, url := range []string{
		"http://a.shop.example/", "http://evil.example/", "http://localhost/", "http://LOCALHOST.:81/",
	} {
		require.NoError(t, g.CheckURL(url), url)
	}
	both := New(Options{
		AllowPrivate: true,
		DenyTargets:  []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
	})
	require.EqualError(t, both.CheckURL("http://localhost/"),
		"127.0.0.1 may not be called: --deny-targets 127.0.0.0/8 denies it")
}

func FuzzReadAddrs(f *testing.F) {
	for _, host := range []string{
		"127.0.0.1", "0x7f.1", "1.2.3.4.5", "::1", "a.b", "", ".", "0x", "1..2", "08", "4294967296",
	} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		addrs, numeric := readAddrs(plainHost(host))
		require.LessOrEqual(t, len(addrs), 2)
		if len(addrs) > 0 {
			require.True(t, numeric)
		}
		if addr, err := netip.ParseAddr(host); err == nil && !strings.ContainsAny(host, "%") {
			require.Equal(t, []netip.Addr{addr}, addrs)
		}
	})
}
