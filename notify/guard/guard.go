package guard

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Options say what a Guard admits beyond public addresses, and what it refuses whatever admits it. The zero value
// admits public addresses alone. ParseTargets reads networks and hosts.
type Options struct {
	// AllowPrivate admits loopback, RFC 1918 and unique local (fc00::/7) addresses; never link-local ones, those of
	// cloud metadata services, or our own API.
	AllowPrivate bool
	// AllowTargets admits exactly what lies in these networks, but for our own API. Link-local, multicast, unspecified
	// and metadata addresses only when the network is no wider than the refused one: 0.0.0.0/0 does not admit
	// 169.254.169.254, 169.254.169.254/32 does. An IPv4 address inside an IPv6 one must be admitted as well, in each
	// place in which a translator or tunnel may look for it.
	AllowTargets []netip.Prefix
	// AllowHosts admits what these names resolve to at a dial, but for our own API and link-local, multicast, unspecified
	// and metadata addresses. Whoever answers for the name decides what else that is.
	AllowHosts []string
	// DenyTargets refuses what lies in these networks, an IPv4 address inside an IPv6 one too. It wins over everything
	// that admits.
	DenyTargets []netip.Prefix
	// DenyHosts refuses these names, and wins as well. Another name for the same address is none of them: to keep an
	// address from being called, deny its network.
	DenyHosts []string
	// OwnAddrs are those that our API listens at, as far as they are known yet; see Guard.Own.
	OwnAddrs []netip.AddrPort
}

// A Guard decides which addresses may be called. It is asked at registration, about what a URL says literally, and at
// every dial, about the name and the address that is really dialled.
type Guard struct {
	private      bool
	allowed      []netip.Prefix
	allowedHosts []string
	denied       []netip.Prefix
	deniedHosts  []string
	localAddrs   func() ([]net.Addr, error) // the addresses of this machine

	mu  sync.RWMutex
	own []netip.AddrPort
}

// New makes a Guard.
func New(o Options) *Guard {
	g := &Guard{
		private:      o.AllowPrivate,
		allowed:      plainNetworks(o.AllowTargets),
		allowedHosts: plainHosts(o.AllowHosts),
		denied:       plainNetworks(o.DenyTargets),
		deniedHosts:  plainHosts(o.DenyHosts),
		localAddrs:   net.InterfaceAddrs,
	}
	for _, addr := range o.OwnAddrs {
		g.Own(addr)
	}
	return g
}

// Own adds an address that our API listens at: no job may call it. Listening at the unspecified address covers every
// address of this machine at that port. It holds for connections made from now on.
func (g *Guard) Own(addr netip.AddrPort) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.own = append(g.own, netip.AddrPortFrom(plainAddr(addr.Addr()), addr.Port()))
}

// CheckDial judges an address that is about to be dialled, to which a host was resolved (empty: the address stands for
// itself). It is for a net.Dialer, which asks before each connection. The error is a *BlockedError.
func (g *Guard) CheckDial(host, network, address string) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || (network != "tcp4" && network != "tcp6") {
		return &BlockedError{Target: network + " " + address, Rule: "no TCP address"}
	}
	// A socket for a mapped address is an IPv4 one.
	return g.CheckAddr(host, netip.AddrPortFrom(plainAddr(target.Addr()), target.Port()))
}

// CheckName refuses a name that is denied, in the form that plainHost gives.
func (g *Guard) CheckName(host string) error {
	if entry, ok := matching(g.deniedHosts, host); ok {
		return &BlockedError{Target: host, Entry: entry}
	}
	return nil
}

// check judges an address that stands for itself.
func (g *Guard) check(target netip.AddrPort) error { return g.CheckAddr("", target) }

// CheckAddr judges an address that a host was resolved to, or that stands for itself when that is empty. What is denied
// comes first, then all strict rules, then the first of the others that matches. Last are the IPv4 addresses inside it.
func (g *Guard) CheckAddr(host string, target netip.AddrPort) error {
	addr := target.Addr().WithZone("")
	if g.owns(netip.AddrPortFrom(plainAddr(addr), target.Port())) {
		return &BlockedError{Target: target.String(), Rule: ownAPI}
	}
	for _, p := range g.denied {
		if p.Contains(addr) {
			return &BlockedError{Target: addr.String(), Entry: p.String()}
		}
	}
	for i := range strictRules {
		if r := &strictRules[i]; r.matches(addr) && !g.lifts(r, addr) {
			return &BlockedError{Target: addr.String(), Rule: r.name, Option: r.option("", addr)}
		}
	}
	decided := false
	for i := range rules {
		r := &rules[i]
		if decided && r.inner == nil || !r.matches(addr) {
			continue
		}
		if !decided && !g.admits(r, host, addr) {
			return &BlockedError{Target: addr.String(), Rule: r.name, Option: r.option(host, addr)}
		}
		decided = true
		if r.inner == nil {
			continue
		}
		for _, inner := range r.inner(addr) {
			if err := g.CheckAddr(host, netip.AddrPortFrom(inner, target.Port())); err != nil {
				return err
			}
		}
	}
	return nil
}

// lifts reports whether the options admit what a strict rule refuses.
func (g *Guard) lifts(r *rule, addr netip.Addr) bool {
	bits := cmp.Or(r.bits, r.prefix.Bits())
	return slices.ContainsFunc(g.allowed, func(p netip.Prefix) bool { return p.Bits() >= bits && p.Contains(addr) })
}

// admits reports whether the options admit what a rule that is not strict refuses.
func (g *Guard) admits(r *rule, host string, addr netip.Addr) bool {
	if r.private && g.private {
		return true
	}
	if host != "" {
		if _, ok := matching(g.allowedHosts, host); ok {
			return true
		}
	}
	return slices.ContainsFunc(g.allowed, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// owns reports whether something of ours listens at the address. Dialling the unspecified address reaches loopback.
func (g *Guard) owns(target netip.AddrPort) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, own := range g.own {
		if own.Port() != target.Port() {
			continue
		}
		if own.Addr() == target.Addr() || target.Addr().IsUnspecified() ||
			(own.Addr().IsUnspecified() && g.isLocal(target.Addr())) {
			return true
		}
	}
	return false
}

// isLocal reports whether an address is one of this machine's. When that cannot be told, it is.
func (g *Guard) isLocal(addr netip.Addr) bool {
	if addr.IsLoopback() {
		return true
	}
	addrs, err := g.localAddrs()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(addrs, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		if !ok {
			return false
		}
		one, ok := netip.AddrFromSlice(n.IP)
		return ok && plainAddr(one) == addr
	})
}

// plainAddr is an address without its zone, and out of its IPv4-mapped form.
func plainAddr(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }
