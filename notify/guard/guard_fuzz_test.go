package guard

import (
	"net/netip"
	"testing"

	"code.dny.dev/ssrf"
	"github.com/stretchr/testify/require"
)

func FuzzGuard_IsAtLeastAsStrictAsAnIndependentOne(f *testing.F) {
	for _, addr := range []string{
		"127.0.0.1", "8.8.8.8", "::ffff:10.0.0.1", "64:ff9b::a00:1", "fd00::1", "2001:db8::", "ff02::1",
	} {
		f.Add(netip.MustParseAddr(addr).AsSlice())
	}
	g, other := New(public), ssrf.New(ssrf.WithAnyPort())
	f.Fuzz(func(t *testing.T, raw []byte) {
		addr, ok := netip.AddrFromSlice(raw)
		if ok && other.SafeAddr(addr) != nil && g.CheckAddr("", netip.AddrPortFrom(addr, 443)) == nil {
			t.Fatalf("%s is admitted", addr)
		}
	})
}

// With any options, admitted addresses are public by an independent list or allowed, and never denied or our own.
func FuzzGuard_AdmitsOnlyPublicOrAllowedAddresses(f *testing.F) {
	raw := func(addr string) []byte { return netip.MustParseAddr(addr).AsSlice() }
	f.Add(raw("10.1.2.3"), uint16(80), raw("10.0.0.0"), 8, raw("10.1.0.0"), 16, true, false)
	f.Add(raw("169.254.169.254"), uint16(80), raw("0.0.0.0"), 0, raw("1.1.1.1"), 32, true, true)
	f.Add(raw("64:ff9b::a00:1"), uint16(443), raw("64:ff9b::"), 96, raw("10.0.0.0"), 8, false, true)
	f.Add(raw("::ffff:10.0.0.1"), uint16(1), raw("::ffff:0:0"), 96, raw("::"), 0, false, false)
	f.Add(raw("fe80::5efe:808:808"), uint16(80), raw("::"), 0, raw("1.1.1.1"), 32, true, true)
	f.Add(raw("fd00:c1::a9fe:a9fe"), uint16(80), raw("fd00::"), 8, raw("1.1.1.1"), 32, true, false)
	f.Add(raw("64:ff9b:1:1234:a9:fea9:fe08:808"), uint16(80), raw("64:ff9b:1::"), 48, raw("1.1.1.1"), 32, true, true)
	f.Add(raw("127.0.0.1"), uint16(8080), raw("127.0.0.0"), 8, raw("::1"), 128, true, true)
	other := ssrf.New(ssrf.WithAnyPort())
	f.Fuzz(func(
		t *testing.T, raw []byte, port uint16, allowRaw []byte, allowBits int, denyRaw []byte, denyBits int,
		private, named bool,
	) {
		addr, ok := netip.AddrFromSlice(raw)
		allowAddr, okAllow := netip.AddrFromSlice(allowRaw)
		denyAddr, okDeny := netip.AddrFromSlice(denyRaw)
		if !ok || !okAllow || !okDeny {
			return
		}
		allow, errAllow := allowAddr.Prefix(allowBits)
		deny, errDeny := denyAddr.Prefix(denyBits)
		if errAllow != nil || errDeny != nil {
			return
		}
		own := netip.MustParseAddrPort("127.0.0.1:8080")
		g := New(Options{
			AllowPrivate: private, AllowTargets: []netip.Prefix{allow}, AllowHosts: []string{"shop.internal"},
			DenyTargets: []netip.Prefix{deny}, OwnAddrs: []netip.AddrPort{own},
		})
		host := ""
		if named {
			host = "shop.internal"
		}
		target := netip.AddrPortFrom(addr, port)
		if err := g.CheckAddr(host, target); err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		plain := addr.Unmap()
		require.False(t, deny.Contains(addr) || deny.Contains(plain) && addr.Is4(), "%s is denied by %s", addr, deny)
		require.NotEqual(t, own, netip.AddrPortFrom(plain, port))
		for _, strict := range strictRules {
			require.False(t, strict.matches(addr.WithZone("")) && allowBits < strict.prefix.Bits(),
				"%s is admitted by %s", addr, allow)
		}
		allowed := allow.Contains(addr) || private && (plain.IsPrivate() || plain.IsLoopback())
		if plain.IsLinkLocalUnicast() || plain.IsMulticast() || plain.IsUnspecified() {
			require.True(t, allow.Contains(addr) && allowBits >= 4, "%s is admitted by %s", addr, allow)
		} else if !named {
			require.True(t, allowed || other.SafeAddr(addr) == nil, "%s is admitted by %s", addr, allow)
		}
	})
}
